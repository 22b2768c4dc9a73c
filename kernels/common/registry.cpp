#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "kernels/common/by_compiler.hpp"
#include "kernels/common/lattice.hpp"

namespace stepladder {
namespace {

using Entries = std::vector<detail::Entry>;

// A function-local static: registrations use it during static initialisation.
std::map<std::string_view, Entries>& table() {
  static std::map<std::string_view, Entries> entries_of_primitive;
  return entries_of_primitive;
}

// Number of rungs below, along builds_on. The walk ends at a missing rung or after a cycle.
int rung(const Entries& all, const VariantInfo& info) {
  int height = 0;
  std::string_view below = info.builds_on;
  while (!below.empty() && height <= static_cast<int>(all.size())) {
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const auto& entry) { return entry.info->name == below; });
    ++height;
    below = found == all.end() ? std::string_view{} : std::string_view{found->info->builds_on};
  }
  return height;
}

// Kept until the program ends: entries point to them.
const char* kept(std::string text) {
  static std::deque<std::string> texts;
  return texts.emplace_back(std::move(text)).c_str();
}
const VariantInfo* kept(const VariantInfo& info) {
  static std::deque<VariantInfo> infos;
  return &infos.emplace_back(info);
}

}  // namespace

void detail::add(const char* primitive, const Entry& entry) {
  Entries& all = table()[primitive];
  all.push_back(entry);
  // Ladder order: CPU, CUDA, OpenCL; our variants before vendor libraries, those of one process
  // before those of several, then rung, name and ISA.
  using Key = std::tuple<Place, bool, bool, int, std::string_view, Isa>;
  std::vector<std::pair<Key, Entry>> keyed;
  for (const Entry& e : all)
    keyed.push_back({{e.info->place, e.info->technique == Technique::vendor, e.info->over_ranks,
                      rung(all, *e.info), e.info->name, e.info->isa},
                     e});
  std::stable_sort(keyed.begin(), keyed.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::transform(keyed.begin(), keyed.end(), all.begin(),
                 [](const auto& pair) { return pair.second; });
}

void detail::add_by_compiler(const char* primitive, const VariantInfo& serial, AnyFunction factory,
                             Isa isa, bool has_pragmas) {
  VariantInfo info = serial;
  info.name = kept(serial.name + std::string(has_pragmas ? "_omp_simd" : "_o3"));
  info.builds_on = serial.name;
  info.adds = has_pragmas ? "the same source, vectorized as its `#pragma omp simd` allows"
                          : "the same source, vectorized by the compiler alone (-O3)";
  info.idea = Idea::compiler;
  info.isa = isa;
  info.by_compiler = !has_pragmas;
  add(primitive, {kept(info), factory, nullptr});
}

void detail::add_corner(const char* primitive, const Lattice& lattice, unsigned corner,
                        AnyFunction factory, Isa isa) {
  const auto threads = static_cast<unsigned>(lattice.switches.size() - 1);
  for (const unsigned bits : {corner, corner | 1U << threads}) {
    std::string name = "lattice", below = "lattice";
    VariantInfo info{.name = "", .technique = Technique::serial, .adds = "no technique"};
    for (unsigned i = 0; i <= threads; ++i) {
      if ((bits >> i & 1) == 0) continue;
      const Switch& on = lattice.switches[i];
      below = name;  // without the last one
      name += std::string("_") + on.name;
      info.adds = on.name;
      info.idea = on.idea;
      if (on.idea == Idea::vectors) info.technique = Technique::simd;
    }
    if ((bits >> threads & 1) != 0) info.technique = Technique::openmp;
    info.name = kept(name);
    info.builds_on = bits == 0 ? lattice.below : kept(below);
    info.isa = isa;
    info.lattice = &lattice;
    info.corner = bits;
    info.threaded = (bits >> threads & 1) != 0;
    add(primitive, {kept(info), factory, nullptr});
  }
}

std::span<const detail::Entry> detail::entries(const char* primitive) { return table()[primitive]; }

const char* name_of(Technique technique) {
  constexpr const char* names[] = {"serial", "simd", "openmp", "pthread",
                                   "mpi",    "cuda", "opencl", "vendor"};
  static_assert(std::size(names) == static_cast<std::size_t>(Technique::vendor) + 1);
  return names[static_cast<std::size_t>(technique)];
}

const char* name_of(Place place) {
  constexpr const char* names[] = {"cpu", "cuda", "opencl"};
  return names[static_cast<std::size_t>(place)];
}

const char* name_of(Precision precision) {
  constexpr const char* names[] = {"fp32", "tf32", "fp16", "bf16", "int8"};
  static_assert(std::size(names) == static_cast<std::size_t>(Precision::int8) + 1);
  return names[static_cast<std::size_t>(precision)];
}

const char* name_of(Idea idea) {
  constexpr const char* names[] = {"",
                                   "loop order",
                                   "cache blocking",
                                   "compiler",
                                   "vectors",
                                   "register tile",
                                   "packing",
                                   "threads",
                                   "processes",
                                   "algorithm",
                                   "layout",
                                   "fusion",
                                   "shared memory",
                                   "pipelining",
                                   "compression",
                                   "streaming stores",
                                   "prefetch",
                                   "coalescing",
                                   "tensor cores",
                                   "dot products",
                                   "matrix unit"};
  static_assert(std::size(names) == static_cast<std::size_t>(Idea::matrix_unit) + 1);
  return names[static_cast<std::size_t>(idea)];
}

std::string full_name(const VariantInfo& info) {
  std::string name = info.name;
  if (info.isa != Isa::any) name += std::string("_") + name_of(info.isa);
  return name;
}

}  // namespace stepladder

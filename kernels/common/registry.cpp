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
  switch (technique) {
    case Technique::serial:
      return "serial";
    case Technique::simd:
      return "simd";
    case Technique::openmp:
      return "openmp";
    case Technique::pthread:
      return "pthread";
    case Technique::mpi:
      return "mpi";
    case Technique::cuda:
      return "cuda";
    case Technique::opencl:
      return "opencl";
    case Technique::vendor:
      return "vendor";
  }
  return "";
}

const char* name_of(Place place) {
  switch (place) {
    case Place::cpu:
      return "cpu";
    case Place::cuda:
      return "cuda";
    case Place::opencl:
      return "opencl";
  }
  return "";
}

const char* name_of(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return "fp32";
    case Precision::tf32:
      return "tf32";
    case Precision::fp16:
      return "fp16";
    case Precision::bf16:
      return "bf16";
    case Precision::int8:
      return "int8";
  }
  return "";
}

const char* name_of(Idea idea) {
  switch (idea) {
    case Idea::none:
      return "";
    case Idea::loop_order:
      return "loop order";
    case Idea::cache_blocking:
      return "cache blocking";
    case Idea::compiler:
      return "compiler";
    case Idea::vectors:
      return "vectors";
    case Idea::register_tile:
      return "register tile";
    case Idea::packing:
      return "packing";
    case Idea::threads:
      return "threads";
    case Idea::processes:
      return "processes";
    case Idea::algorithm:
      return "algorithm";
    case Idea::layout:
      return "layout";
    case Idea::fusion:
      return "fusion";
    case Idea::shared_memory:
      return "shared memory";
    case Idea::pipelining:
      return "pipelining";
    case Idea::compression:
      return "compression";
    case Idea::streaming_stores:
      return "streaming stores";
    case Idea::prefetch:
      return "prefetch";
    case Idea::coalescing:
      return "coalescing";
    case Idea::tensor_cores:
      return "tensor cores";
    case Idea::dot_products:
      return "dot products";
    case Idea::matrix_unit:
      return "matrix unit";
  }
  return "";
}

std::string full_name(const VariantInfo& info) {
  std::string name = info.name;
  if (info.isa != Isa::any) name += std::string("_") + name_of(info.isa);
  return name;
}

}  // namespace stepladder

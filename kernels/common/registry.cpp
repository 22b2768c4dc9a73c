#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "kernels/common/variant.hpp"

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

}  // namespace

void detail::add(const char* primitive, const Entry& entry) {
  Entries& all = table()[primitive];
  all.push_back(entry);
  // Ladder order: CPU before CUDA, our variants before vendor libraries, those of one process
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
    case Technique::vendor:
      return "vendor";
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
  }
  return "";
}

std::string full_name(const VariantInfo& info) {
  std::string name = info.name;
  if (info.isa != Isa::any) name += std::string("_") + name_of(info.isa);
  return name;
}

}  // namespace stepladder

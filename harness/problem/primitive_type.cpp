#include "harness/problem/primitive_type.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "harness/io/glob.hpp"
#include "harness/io/nearest.hpp"
#include "kernels/common/opencl/devices.hpp"

namespace stepladder {

namespace {

std::vector<Variant> entries_of(const char* primitive, bool of_lattice) {
  std::vector<Variant> all;
  for (const detail::Entry& entry : detail::entries(primitive)) {
    if ((entry.info->lattice != nullptr) != of_lattice) continue;
    Variant variant{primitive, full_name(*entry.info), entry.info, entry, ""};
    if (entry.why_missing != nullptr)
      variant.why_unavailable = entry.why_missing;
    else if (!cpu_has(entry.info->isa))
      variant.why_unavailable = fmt::format("this CPU has no {}", name_of(entry.info->isa));
    else if (entry.info->place == Place::cuda && device() == nullptr)
      variant.why_unavailable = device_status();
    all.push_back(std::move(variant));
  }
  return all;
}

}  // namespace

std::vector<Variant> PrimitiveType::variants() const { return entries_of(name(), false); }
std::vector<Variant> PrimitiveType::corners() const { return entries_of(name(), true); }

std::string why_not_here(const PrimitiveType& primitive, const Variant& variant) {
  if (!variant.why_unavailable.empty()) return variant.why_unavailable;
  if (variant.info->place == Place::opencl)  // whose plans would compile their kernels
    if (std::string why = opencl::why_no_device(); !why.empty()) return why;
  Random random(1);
  try {
    primitive.random_case(random, 1)->plan(variant, {});
  } catch (const NotHere& reason) {
    return reason.what();
  } catch (const Unsupported&) {
    // it may support other problems
  }
  return "";
}

std::vector<Variant> variants_for(const PrimitiveType& primitive, const std::string& globs) {
  std::vector<Variant> all = primitive.variants();
  for (const std::string& glob : split_globs(globs))
    if (glob.starts_with("lattice")) {
      const std::vector<Variant> corners = primitive.corners();
      all.insert(all.end(), corners.begin(), corners.end());
      break;
    }
  return all;
}

std::vector<Variant> select_variants(const PrimitiveType& primitive, const std::string& globs) {
  const std::vector<Variant> all = variants_for(primitive, globs);
  const auto is_narrower = [&](const Variant& variant) {  // than another build of the same family
    return std::any_of(all.begin(), all.end(), [&](const Variant& other) {
      return std::string_view(other.info->name) == variant.info->name &&
             other.info->isa > variant.info->isa && other.why_unavailable.empty();
    });
  };
  const auto matches = [&](const std::string& glob, const Variant& variant) {
    const bool named = !glob.empty() && glob_matches(glob, variant.name);
    const bool of_family = glob.empty() || glob_matches(glob, variant.info->name);
    const bool shows_widths = std::string_view(variant.info->name) == name_of(Technique::simd);
    const bool wanted_width = variant.info->isa == Isa::any || shows_widths ||
                              (variant.why_unavailable.empty() && !is_narrower(variant));
    return named || (of_family && wanted_width);
  };

  std::vector<bool> chosen(all.size());
  for (const std::string& glob : split_globs(globs)) {
    bool found = glob.empty();
    for (std::size_t i = 0; i < all.size(); ++i)
      if (matches(glob, all[i])) chosen[i] = found = true;
    if (found) continue;
    std::vector<std::string> names;
    for (const Variant& variant : all) names.push_back(variant.name);
    throw UnknownName(fmt::format("variant of {}", primitive.name()), glob, names);
  }
  std::vector<Variant> in_order;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (chosen[i]) in_order.push_back(all[i]);
  return in_order;
}

}  // namespace stepladder

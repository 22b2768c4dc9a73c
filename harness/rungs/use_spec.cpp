#include "harness/rungs/use_spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "harness/adapters/primitives.hpp"
#include "harness/io/nearest.hpp"
#include "harness/io/printable.hpp"
#include "kernels/common/cpu/extensions.hpp"
#include "kernels/common/opencl/devices.hpp"

namespace stepladder {
namespace {

const std::vector<Variant>& expected(const std::vector<Variant>& variants) {
  if (std::ranges::any_of(variants,
                          [](const Variant& v) { return v.info->place == Place::opencl; }))
    opencl::expect_rungs();
  return variants;
}

bool holds_word(const std::string& name, const std::string& word) {
  std::istringstream parts(name);
  for (std::string part; std::getline(parts, part, '_');)
    if (part == word) return true;
  return false;
}

std::set<std::string> known_rungs() {
  std::set<std::string> known = {"best", "bf16", "int8", "compiler", "vendor", "cuda", "cuda_tf32"};
  for (const PrimitiveType* type : primitives())
    for (const Variant& variant : variants_for(*type, "lattice"))
      known.insert({variant.name, variant.info->name, name_of(variant.info->technique)});
  return known;
}

// Throws UnknownName unless some ladder has the rung, std::invalid_argument where this CPU cannot
// run any of `bf16` or `int8`.
void expect_known_rung(const std::string& rung) {
  static const std::set<std::string> known = known_rungs();
  if (!known.contains(rung))
    throw UnknownName("rung", rung, std::vector<std::string>(known.begin(), known.end()));
  for (const auto& [narrow, extension] :
       {std::pair{"bf16", Extension::avx512_bf16}, std::pair{"int8", Extension::avx512_vnni}})
    if (rung == narrow && !cpu_has(extension))
      throw std::invalid_argument(
          fmt::format("--use {}: this CPU has no {}", narrow, name_of(extension)));
}

// Of `variants`, in ladder order: the widest available build of each family that satisfies
// `wanted`.
template <class Wanted>
std::vector<Variant> widest(const std::vector<Variant>& variants, const Wanted& wanted) {
  std::vector<Variant> chosen;
  for (const Variant& variant : variants) {
    if (!wanted(variant)) continue;
    const auto same = std::find_if(chosen.begin(), chosen.end(), [&](const Variant& other) {
      return std::string_view(other.info->name) == variant.info->name;
    });
    if (same == chosen.end())
      chosen.push_back(variant);
    else if (variant.why_unavailable.empty())
      *same = variant;  // variants of a family come narrowest first
  }
  return chosen;
}

// The products and the update of a step are of one process: all_reduce comes between them.
bool is_own_cpu(const Variant& v) {
  return v.info->place == Place::cpu && v.info->technique != Technique::vendor &&
         !v.info->over_ranks;
}

}  // namespace

UseSpec::UseSpec(const std::string& text) : text_(text) {
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos) {
      if (!rung_.empty())
        throw std::invalid_argument(
            printable(fmt::format("--use {}: two rungs for all primitives, {} and {}; "
                                  "exceptions are written primitive=rung",
                                  text, rung_, part)));
      expect_known_rung(part);
      rung_ = part;
    } else {
      const std::string name = part.substr(0, equals), rung = part.substr(equals + 1);
      primitive(name);
      expect_known_rung(rung);
      exceptions_[name] = rung;
    }
  }
  if (rung_.empty()) rung_ = "best";
}

UseSpec UseSpec::with(const std::string& primitive, const std::string& rung) const {
  UseSpec changed = *this;
  changed.exceptions_[primitive] = rung;
  changed.text_ = fmt::format("{},{}={}", text_, primitive, rung);
  return changed;
}

UseSpec UseSpec::of_constant_weights() const {
  UseSpec constant = *this;
  constant.constant_weights_ = true;
  return constant;
}

std::string UseSpec::rung_of(const std::string& primitive) const {
  const auto found = exceptions_.find(primitive);
  return found == exceptions_.end() ? rung_ : found->second;
}

std::vector<Variant> UseSpec::candidates(const PrimitiveType& type) const {
  const std::string rung = rung_of(type.name());
  const std::vector<Variant> rungs = type.variants();
  const auto available = [](std::vector<Variant> all) {
    std::vector<Variant> here;
    for (const Variant& v : all)
      if (v.why_unavailable.empty()) here.push_back(v);
    return here.empty() ? all : here;
  };
  const auto may_pack = [this](const Variant& v) {
    return constant_weights_ || !v.info->prepacked;
  };
  const auto best = [&] {
    std::vector<Variant> own = widest(rungs, [&](const Variant& v) {
      return is_own_cpu(v) && v.info->technique != Technique::serial &&
             v.info->technique != Technique::pthread && may_pack(v) &&
             (v.info->precision == Precision::fp32 ||
              (rung == name_of(v.info->precision) && v.info->encoded_share == 1.0)) &&
             v.info->contraction == 0;
    });
    return available(own.empty() ? widest(rungs, is_own_cpu) : own);
  };
  if (rung == "int8" && !constant_weights_)
    throw std::invalid_argument(
        "--use int8: only infer has it, since training changes the weights");
  if (rung == "best" || rung == "bf16" || rung == "int8") return best();
  if (rung == "compiler") {
    std::vector<Variant> compiled =
        available(widest(rungs, [](const Variant& v) { return v.info->by_compiler; }));
    return compiled.empty() ? best() : compiled;
  }
  if (rung == "vendor") {
    std::vector<Variant> vendor = available(widest(rungs, [&](const Variant& v) {
      return v.info->place == Place::cpu && v.info->technique == Technique::vendor && may_pack(v) &&
             v.info->precision == Precision::fp32 && !v.info->over_ranks;
    }));
    return vendor.empty() ? best() : vendor;
  }
  if (rung == "opencl") {
    std::vector<Variant> portable = available(
        widest(rungs, [](const Variant& v) { return v.info->technique == Technique::opencl; }));
    return portable.empty() ? best() : expected(portable);
  }
  if (rung == "cuda" || rung == "cuda_tf32")
    return available(widest(rungs, [&](const Variant& v) {
      return v.info->technique == Technique::cuda &&
             (v.info->precision == Precision::fp32 || rung == "cuda_tf32");
    }));

  const std::vector<Variant> named = variants_for(type, rung);
  std::vector<Variant> found = widest(named, [&](const Variant& v) { return v.name == rung; });
  if (found.empty()) found = widest(named, [&](const Variant& v) { return v.info->name == rung; });
  if (!found.empty()) return expected(found);
  const Technique order[] = {Technique::pthread, Technique::openmp, Technique::simd,
                             Technique::serial};
  const auto* technique = std::find_if(std::begin(order), std::end(order),
                                       [&](Technique t) { return rung == name_of(t); });
  for (bool is_named = true; technique != std::end(order); ++technique, is_named = false) {
    found = widest(
        rungs, [&](const Variant& v) { return is_own_cpu(v) && v.info->technique == *technique; });
    if (found.empty() && is_named)
      found = widest(
          rungs, [&](const Variant& v) { return is_own_cpu(v) && holds_word(v.info->name, rung); });
    if (!found.empty()) return {found.front()};
  }
  // A rung of another ladder, for example `packed` for convolution.
  return best();
}

bool UseSpec::is_threaded() const {
  return std::ranges::any_of(primitives(), [&](const PrimitiveType* type) {
    return !type->needs_ranks() &&
           std::ranges::any_of(candidates(*type),
                               [](const Variant& variant) { return variant.info->threaded; });
  });
}

}  // namespace stepladder

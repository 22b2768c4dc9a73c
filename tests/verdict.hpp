// Verifies a variant in a test as `verify` and `bench` do, and makes variants that are wrong on
// purpose.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "harness/adapters/make_case.hpp"
#include "harness/adapters/primitives.hpp"
#include "harness/verify/verify.hpp"
#include "tests/error_messages.hpp"

namespace stepladder {

// Runs one plan of each variant, all of one place, on every filling until it fails. They share the
// references, which may take longer than they.
inline std::vector<Verdict> verdicts_of(Case& problem, const std::vector<Variant>& variants,
                                        int threads = 1, const void* communicator = nullptr) {
  problem.allocate(1, variants.front().info->place == Place::cuda ? device() : nullptr);
  std::vector<std::unique_ptr<Runner>> plans(variants.size());
  std::vector<Verdict> verdicts(variants.size(), {.outcome = Outcome::passed});
  for (const Filling& filling : fillings(problem, variants, 1)) {
    problem.fill(filling.tier, filling.seed);
    for (std::size_t i = 0; i < variants.size(); ++i)
      if (verdicts[i].outcome == Outcome::passed &&
          (filling.tier == Tier::accuracy || takes_exact_tier(problem, *variants[i].info)))
        verdicts[i] = verify(problem, variants[i], {threads, communicator}, plans[i]);
  }
  return verdicts;
}

inline Verdict verdict_of(Case& problem, const Variant& variant, int threads = 1) {
  return verdicts_of(problem, {variant}, threads).front();
}

template <class Primitive>
Verdict verdict_of(const typename Primitive::Problem& problem, const Variant& variant) {
  return verdict_of(*make_case<Primitive>(problem, "test", "test"), variant);
}

// One copy of the operands, filled, for a variant that the test runs itself.
inline void fill_one_copy(Case& problem) {
  problem.allocate(1, nullptr);
  problem.fill(Tier::accuracy, 1);
  problem.reset();
}
template <class Primitive>
std::unique_ptr<Case> filled_case(const typename Primitive::Problem& problem) {
  std::unique_ptr<Case> filled = make_case<Primitive>(problem, "test", "test");
  fill_one_copy(*filled);
  return filled;
}

// A variant that is not in the registry, so that no ladder, step or other test has it. It supports
// every problem in its layout.
template <class Primitive>
Variant unregistered(const char* name, Factory<Primitive> factory, double bound_factor = 1.0,
                     bool normwise = false, Layout layout = Layout::nchw) {
  static std::deque<VariantInfo> infos;  // a Variant points to its own
  const VariantInfo& info = infos.emplace_back(VariantInfo{.name = name,
                                                           .technique = Technique::serial,
                                                           .adds = "a fault",
                                                           .layout = layout,
                                                           .epilogue = true,
                                                           .triangle = true,
                                                           .bound_factor = bound_factor,
                                                           .normwise = normwise});
  return {Primitive::name,
          name,
          &info,
          {&info, reinterpret_cast<detail::AnyFunction>(factory), nullptr},
          ""};
}

// Whether the variant fails on the problem, and the reason contains `part`.
template <class Primitive>
testing::AssertionResult is_caught(const typename Primitive::Problem& problem,
                                   const Variant& variant, const std::string& part) {
  const Verdict verdict = verdict_of<Primitive>(problem, variant);
  const std::string name = variant.name + " on " + direction(problem) + " " + shape(problem);
  if (verdict.outcome != Outcome::failed)
    return testing::AssertionFailure() << name << " was not caught";
  return says(verdict.reason, {part}) << " (" << name << ")";
}

// A rung that is wrong on purpose, and part of the reason that the verifier gives.
template <class Primitive>
struct Fault {
  const char* name;
  typename Primitive::Problem problem;
  Factory<Primitive> factory;
  const char* reason;

  testing::AssertionResult is_caught() const {
    return stepladder::is_caught<Primitive>(problem, unregistered<Primitive>(name, factory),
                                            reason);
  }
};

// Computes in its first run and returns that result in all others. `result` is the span that
// `compute` writes to.
template <class Primitive, auto compute, auto result>
class StaleResult final : public PlanOf<Primitive> {
 public:
  StaleResult(const typename Primitive::Problem& problem, const Resources&) : problem_(problem) {}
  void run(const typename Primitive::Operands& operands) override {
    const std::span<float> current = result(problem_, operands);
    if (kept_.empty()) {
      compute(problem_, operands);
      kept_.assign(current.begin(), current.end());
    }
    std::ranges::copy(kept_, current.begin());
  }

 private:
  typename Primitive::Problem problem_;
  std::vector<float> kept_;
};

// Whether the variant passes on the problem.
template <class Primitive>
testing::AssertionResult passes(const typename Primitive::Problem& problem,
                                const Variant& variant) {
  const Verdict verdict = verdict_of<Primitive>(problem, variant);
  if (verdict.outcome == Outcome::passed) return testing::AssertionSuccess();
  return testing::AssertionFailure() << variant.name << " on " << direction(problem) << " "
                                     << shape(problem) << ": " << verdict.reason;
}

template <class Primitive>
testing::AssertionResult passes(const typename Primitive::Problem& problem,
                                Factory<Primitive> correct) {
  return passes<Primitive>(problem, unregistered<Primitive>("correct", correct));
}

// Whether the registered serial rungs that build on nothing pass; there must be one.
template <class Primitive>
testing::AssertionResult first_rungs_pass(const typename Primitive::Problem& problem) {
  int tried = 0;
  for (const Variant& variant : primitive(Primitive::name).variants()) {
    const bool is_first =
        variant.info->technique == Technique::serial && *variant.info->builds_on == '\0';
    if (!is_first || !variant.why_unavailable.empty()) continue;
    ++tried;
    if (const auto result = passes<Primitive>(problem, variant); !result) return result;
  }
  if (tried == 0) return testing::AssertionFailure() << "the ladder has no first rung";
  return testing::AssertionSuccess();
}

}  // namespace stepladder

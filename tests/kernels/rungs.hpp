// The rungs of a ladder that a test runs on problems of its own.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "harness/problem/suites.hpp"
#include "tests/verdict.hpp"

namespace stepladder {

// Those that can run here and are wanted.
inline std::vector<Variant> rungs_here(const PrimitiveType& type,
                                       const std::function<bool(const VariantInfo&)>& is_wanted) {
  std::vector<Variant> rungs;
  for (const Variant& variant : type.variants())
    if (is_wanted(*variant.info) && why_not_here(type, variant).empty()) rungs.push_back(variant);
  return rungs;
}

// Our own, on the CPU and in one process.
inline std::vector<Variant> own_rungs(const PrimitiveType& type) {
  return rungs_here(type, [](const VariantInfo& info) {
    return info.place == Place::cpu && info.technique != Technique::vendor && !info.over_ranks;
  });
}

// One rung, built for each ISA.
inline std::vector<Variant> rungs_named(const PrimitiveType& type, const std::string& name) {
  return rungs_here(type, [&](const VariantInfo& info) { return info.name == name; });
}

// Expects that the rungs pass on the problem, or are not made for it. The number of those that ran.
inline int expect_passed(Case& problem, const std::vector<Variant>& rungs, int threads,
                         const std::string& what = "") {
  if (rungs.empty()) return 0;
  const std::vector<Verdict> verdicts = verdicts_of(problem, rungs, threads);
  int ran = 0;
  for (std::size_t i = 0; i < rungs.size(); ++i) {
    if (verdicts[i].outcome == Outcome::unavailable) continue;
    ++ran;
    EXPECT_EQ(verdicts[i].outcome, Outcome::passed)
        << rungs[i].name << ", " << problem.info().direction << " " << problem.info().shape << what
        << ", " << threads << " threads: " << verdicts[i].reason;
  }
  return ran;
}
template <class Primitive>
int expect_passed(const typename Primitive::Problem& problem, const std::vector<Variant>& rungs,
                  int threads, const std::string& what = "") {
  return expect_passed(*make_case<Primitive>(problem, "test", "test"), rungs, threads, what);
}
// On the problems that `--shape` makes of the text: where it names no direction, in all.
inline int expect_passed(const PrimitiveType& type, const std::string& shape,
                         const std::vector<Variant>& rungs, int threads) {
  int ran = 0;
  for (const auto& problem : shape_problems(type, shape, 1))
    ran += expect_passed(*problem, rungs, threads);
  return ran;
}

}  // namespace stepladder

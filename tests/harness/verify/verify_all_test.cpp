// Every variant that can run here is right on random problems, on one, two and three threads. For
// more problems: `stepladder verify --random 2000`.
#include <gtest/gtest.h>

#include <map>

#include "harness/adapters/primitives.hpp"
#include "harness/problem/random.hpp"
#include "harness/ranks/mpi_session.hpp"
#include "harness/verify/verify.hpp"
#include "kernels/common/opencl/devices.hpp"
#include "tests/verdict.hpp"

namespace stepladder {
namespace {

class VerifyAll : public testing::TestWithParam<const PrimitiveType*> {};

// What a variant passed, and what it refused because of instructions that this CPU lacks.
struct Count {
  int passed = 0, beyond_this_cpu = 0;
};

// Runs one plan for each thread count of each variant on the same fillings.
void verify_each(Case& problem, const std::vector<Variant>& variants,
                 std::map<std::string, Count>& counts) {
  struct Trial {
    const Variant* variant;
    int threads;
    std::unique_ptr<Runner> plan{};
    bool ended = false;
  };
  std::vector<Trial> trials;
  for (const Variant& variant : variants)
    for (const int threads :
         variant.info->threaded ? std::vector<int>{1, 2, 3} : std::vector<int>{1})
      trials.push_back({&variant, threads});
  problem.allocate(1, nullptr);
  for (const Filling& filling : fillings(problem, variants, 1)) {
    problem.fill(filling.tier, filling.seed);
    for (Trial& trial : trials) {
      const Variant& variant = *trial.variant;
      if (trial.ended || (filling.tier == Tier::exact && !takes_exact_tier(problem, *variant.info)))
        continue;
      const Verdict verdict =
          verify(problem, variant, {trial.threads, mpi_session().communicator()}, trial.plan);
      trial.ended = verdict.outcome != Outcome::passed;
      EXPECT_NE(verdict.outcome, Outcome::failed)
          << variant.name << " on " << trial.threads << " threads, " << problem.info().direction
          << " " << problem.info().shape << ": " << verdict.reason;
      // One process has no other rank: tests/mpi verifies what needs several.
      const bool needs_several =
          problem.info().primitive == "all_reduce" && verdict.outcome == Outcome::unavailable;
      Count& count = counts[variant.name];
      count.passed += verdict.outcome == Outcome::passed || needs_several;
      count.beyond_this_cpu +=
          verdict.outcome == Outcome::unavailable && verdict.reason.starts_with("this CPU has no ");
    }
  }
}

TEST_P(VerifyAll, PassesRandomProblems) {
  const PrimitiveType& type = *GetParam();
  if (type.needs_ranks()) mpi_session().start();
  std::vector<Variant> variants;
  for (Variant& variant : type.variants())
    if (variant.why_unavailable.empty() &&
        (variant.info->place == Place::cpu ||
         (variant.info->place == Place::opencl && opencl::why_no_device().empty())))
      variants.push_back(std::move(variant));
  ASSERT_FALSE(variants.empty() && MpiSession::why_unavailable().empty());

  constexpr int problems = 60;
  Random random(20, type.name());
  std::map<std::string, Count> counts;
  for (int i = 0; i < problems; ++i)
    verify_each(*type.random_case(random, mpi_session().ranks()), variants, counts);
  for (const Variant& variant : variants)
    if (variant.info->technique != Technique::vendor &&  // whose library may be absent
        !variant.info->over_ranks) {                     // tests/mpi
      const Count& count = counts[variant.name];
      EXPECT_GT(count.passed + count.beyond_this_cpu, 0)
          << variant.name << " took none of the problems";
    }
}

INSTANTIATE_TEST_SUITE_P(Primitives, VerifyAll,
                         testing::ValuesIn(primitives().begin(), primitives().end()),
                         [](const auto& info) { return info.param->name(); });

}  // namespace
}  // namespace stepladder

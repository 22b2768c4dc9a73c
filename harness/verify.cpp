#include "harness/verify.hpp"

#include <fmt/format.h>

#include <chrono>

#include "harness/ranks.hpp"

namespace stepladder {

Verdict verify(Case& problem, const Variant& variant, const Resources& resources,
               int runs, std::unique_ptr<Runner>* runner) {
  if (!variant.why_unavailable.empty())
    return {.outcome = Outcome::unavailable, .reason = variant.why_unavailable};
  const bool over_ranks = problem.info().ranks > 1;
  MpiSession& mpi = mpi_session();
  try {
    std::unique_ptr<Runner> planned = problem.plan(variant, resources);
    Check check;
    double seconds = 0;
    for (int run = 0; run < runs; ++run) {
      problem.reset();
      planned->prepare();
      const auto start = std::chrono::steady_clock::now();
      planned->run(0);
      if (variant.info->place == Place::cuda) device()->synchronize();
      seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      check = problem.check(*variant.info, 0);
      if (over_ranks) {
        const bool everywhere = mpi.max(check.passed ? 0.0 : 1.0) == 0.0;
        if (check.passed && !everywhere) check = {.what = "wrong on another rank"};
        check.error_ratio = mpi.max(check.error_ratio);
        if (!mpi.same_on_all_ranks(problem.result_hash(0)) && check.passed)
          check = {.what = "the ranks hold different results"};
      }
      if (!check.passed)
        return {.outcome = Outcome::failed,
                .reason = run == 0 ? check.what : "second run with the same plan: " + check.what};
    }
    if (runner != nullptr) *runner = std::move(planned);
    return {.outcome = Outcome::passed, .error_ratio = check.error_ratio, .seconds = seconds};
  } catch (const Unsupported& limit) {
    return {.outcome = Outcome::unavailable, .reason = limit.what()};
  } catch (const std::exception& error) {
    // The other ranks may be waiting inside the variant for this one.
    if (over_ranks) mpi.abort(fmt::format("{} threw: {}", variant.name, error.what()));
    return {.outcome = Outcome::failed, .reason = fmt::format("threw: {}", error.what())};
  }
}

bool takes_exact_tier(const Case& problem, const VariantInfo& variant) {
  return problem.has_exact_tier() && variant.bound_factor <= 1.0;
}

}  // namespace stepladder

#include "harness/verify/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "harness/problem/threads.hpp"
#include "harness/ranks/mpi_session.hpp"
#include "harness/verify/feedback.hpp"

namespace stepladder {

std::vector<Filling> fillings(const Case& problem, const std::vector<Variant>& variants,
                              std::uint64_t seed) {
  std::vector<Filling> all;
  if (problem.has_exact_tier()) all.push_back({Tier::exact, seed});
  const bool all_exact = std::all_of(variants.begin(), variants.end(), [&](const Variant& variant) {
    return takes_exact_tier(problem, *variant.info);
  });
  if (!all_exact) all.push_back({Tier::accuracy, seed + 1});
  all.push_back({Tier::accuracy, seed});
  return all;
}

double expected_seconds(const Case& problem) {
  constexpr double bytes_per_second = 2e7, flops_per_second = 1e8;
  return std::max(problem.operand_bytes() / bytes_per_second,
                  problem.info().flops / flops_per_second);
}

bool over_ranks(const Case& problem) {
  return problem.info().ranks > 1 && mpi_session().ranks() > 1;
}

namespace {

// The verdict of `run`, or of what it throws on this rank.
template <class Run>
Verdict verdict_of(const Case& problem, const Variant& variant, const Run& run) {
  try {
    return run();
  } catch (const NotHere& reason) {
    return {.outcome = Outcome::unavailable, .reason = reason.what(), .runs_nowhere = true};
  } catch (const Unsupported& limit) {
    return {.outcome = Outcome::unavailable, .reason = limit.what()};
  } catch (const std::exception& error) {
    // The other ranks may wait inside the variant for this one.
    if (over_ranks(problem))
      mpi_session().abort(fmt::format("{} threw: {}", variant.name, error.what()));
    return {.outcome = Outcome::failed, .reason = fmt::format("threw: {}", error.what())};
  }
}

// The same on all ranks: a variant that one of them cannot run is unavailable on all.
template <class Run>
Verdict watched(const Case& problem, const Variant& variant, const Run& run) {
  const MpiSession& mpi = mpi_session();
  const auto watch = mpi.watch(variant.name, mpi.ranks() * expected_seconds(problem));
  Verdict verdict = verdict_of(problem, variant, run);
  if (!over_ranks(problem)) return verdict;
  const bool here = verdict.outcome == Outcome::unavailable;
  const std::string why = mpi.failure(here ? verdict.reason : "");
  verdict.runs_nowhere = mpi.max(verdict.runs_nowhere ? 1 : 0) > 0;
  if (!why.empty())
    verdict = {
        .outcome = Outcome::unavailable, .reason = why, .runs_nowhere = verdict.runs_nowhere};
  return verdict;
}

// Returns its seconds. A plan that has run before is told of other operands only where it must be,
// so that none returns what it computed until it is told.
double run_once(const Variant& variant, Runner& runner, bool is_first) {
  if (is_first || variant.info->prepacked) runner.prepare();
  const auto start = std::chrono::steady_clock::now();
  runner.run(0);
  if (variant.info->place == Place::cuda) device()->synchronize();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Verdict plan_again(Case& problem, const Variant& variant, const Resources& resources, bool warm_up,
                   std::unique_ptr<Runner>& runner) {
  return watched(problem, variant, [&]() -> Verdict {
    runner = problem.plan(variant, resources);
    problem.reset();
    problem.change(*variant.info, 0, 1, 1);
    return {.outcome = Outcome::passed, .seconds = warm_up ? run_once(variant, *runner, true) : 0};
  });
}

Verdict verify(Case& problem, const Variant& variant, const Resources& resources,
               std::unique_ptr<Runner>& runner) {
  if (!variant.why_unavailable.empty())
    return {
        .outcome = Outcome::unavailable, .reason = variant.why_unavailable, .runs_nowhere = true};
  MpiSession& mpi = mpi_session();
  const bool is_second = runner != nullptr;
  std::unique_ptr<Runner> planned = std::move(runner);
  const bool has_feedback = variant.info->contraction > 0;
  if (has_feedback) planned.reset();  // its residual belongs to other values
  Verdict ran = watched(problem, variant, [&]() -> Verdict {
    if (variant.info->threaded && variant.info->place == Place::cpu)
      if (const std::string reason = why_smaller_team(resources.threads); !reason.empty())
        throw Unsupported(reason);
    const bool is_first = planned == nullptr;
    if (is_first) planned = problem.plan(variant, resources);
    problem.reset();
    if (!is_first && !problem.is_repeatable(*variant.info)) {  // or it may omit to update again
      planned->run(0);
      problem.reset();
    }
    return {.outcome = Outcome::passed, .seconds = run_once(variant, *planned, is_first)};
  });
  if (ran.outcome != Outcome::passed) return ran;
  return watched(problem, variant, [&]() -> Verdict {
    Check check = problem.check(*variant.info, 0);
    const double relative_error = problem.relative_error(*variant.info, 0);
    if (has_feedback) check = check_feedback(problem, *variant.info, *planned, check);
    if (over_ranks(problem)) {
      const bool everywhere = mpi.max(check.passed ? 0.0 : 1.0) == 0.0;
      if (check.passed && !everywhere) check = {.what = "wrong on another rank"};
      check.error_ratio = mpi.max(check.error_ratio);
      if (!mpi.same_on_all_ranks(problem.result_hash(*variant.info, 0)) && check.passed)
        check = {.what = "the ranks hold different results"};
    }
    if (!check.passed)
      return {.outcome = Outcome::failed,
              .reason = is_second ? "a later run of the plan: " + check.what : check.what};
    runner = std::move(planned);
    return {.outcome = Outcome::passed,
            .error_ratio = check.error_ratio,
            .relative_error = relative_error,
            .seconds = ran.seconds};
  });
}

bool device_is_lost() {
  if (device() == nullptr) return false;
  try {
    device()->synchronize();
    return false;
  } catch (const std::exception&) {
    return true;
  }
}

bool takes_exact_tier(const Case& problem, const VariantInfo& variant) {
  // Small integers fit TF32 and bf16, but their sums, which all_reduce sends, do not fit 16 bits.
  const bool exact = (variant.bound_factor <= 1.0 || variant.operand_error > 0) &&
                     (variant.precision == Precision::fp32 || variant.encoded_share == 1.0) &&
                     variant.contraction == 0;
  return problem.has_exact_tier() && exact;
}

}  // namespace stepladder

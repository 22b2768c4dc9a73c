#include "harness/rungs/plan_store.hpp"

#include <algorithm>
#include <chrono>
#include <limits>

#include "harness/io/counted.hpp"
#include "harness/measure/work_record.hpp"

namespace stepladder {
namespace {

double time_run(Runner& runner, Place place) {
  if (place == Place::cuda) {
    // A launch takes longer than a short kernel. Several overlap with the kernels.
    constexpr int runs = 5;
    device()->start_timer();
    for (int i = 0; i < runs; ++i) runner.run(0);
    return device()->stop_timer() / runs;
  }
  const auto start = std::chrono::steady_clock::now();
  runner.run(0);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

std::vector<Variant> PlanStore::best(Case& problem, std::vector<Variant> candidates,
                                     const Resources& resources) const {
  if (const Variant* variant = tuned(problem, candidates, resources)) return {*variant};
  const auto predicted = predicted_rungs(known_.model, problem, candidates, resources);
  if (predicted.empty()) return candidates;
  std::vector<Variant> close;
  for (const PredictedRung& rung : predicted)
    if (rung.seconds < uncertain_factor * predicted.front().seconds) close.push_back(*rung.variant);
  return close;
}

const Variant* PlanStore::tuned(const Case& problem, const std::vector<Variant>& candidates,
                                const Resources& resources) const {
  const Tuning::Choice* choice = known_.tuning.find(problem.info().name, resources.threads);
  if (choice == nullptr) return nullptr;
  const auto found =
      std::find_if(candidates.begin(), candidates.end(),
                   [&](const Variant& variant) { return variant.name == choice->variant; });
  if (found == candidates.end())
    throw std::runtime_error(
        fmt::format("the tuned choice for {} on {} is {}, which is not among the rungs to "
                    "choose from here; run `stepladder tune` again",
                    problem.info().name, counted(resources.threads, "thread"), choice->variant));
  return &*found;
}

std::string PlanStore::key_of(const Case& problem, const Resources& resources) {
  return fmt::format("{} | {}", problem.info().name, resources.threads);
}

std::string PlanStore::key_of(const Case& problem, const Variant& variant,
                              const Resources& resources) {
  return fmt::format("{} | {} | {}", problem.info().name, variant.name, resources.threads);
}

std::vector<Variant> PlanStore::close_to(const Variant& winner, const Case& problem,
                                         const std::vector<Variant>& candidates,
                                         const Resources& resources) const {
  constexpr double close_factor = 2.5;
  constexpr std::size_t most = 3;
  const auto seconds = [&](const Variant& variant) {
    const auto known = verified_.find(key_of(problem, variant, resources));
    return known == verified_.end() ? std::numeric_limits<double>::infinity() : known->second;
  };
  std::vector<Variant> close;
  for (const Variant& variant : candidates)
    if (variant.name != winner.name && seconds(variant) < close_factor * seconds(winner))
      close.push_back(variant);
  std::stable_sort(close.begin(), close.end(),
                   [&](const Variant& a, const Variant& b) { return seconds(a) < seconds(b); });
  if (close.size() > most) close.erase(close.begin() + most, close.end());
  return close;
}

// A preferred variant that cannot run here, as on other hosts, leaves the choice open.
Variant PlanStore::preferred_or_fastest(Case& problem, const std::vector<Variant>& candidates,
                                        const Resources& resources, bool alone) {
  const auto name = preferred_.find(key_of(problem, resources));
  if (name != preferred_.end())
    for (const Variant& variant : candidates)
      if (variant.name == name->second) {
        try {
          return fastest(problem, {variant}, resources, alone);
        } catch (const NoVariant&) {
          break;
        }
      }
  return fastest(problem, candidates, resources, alone);
}

Variant PlanStore::fastest(Case& problem, const std::vector<Variant>& candidates,
                           const Resources& resources, bool alone) {
  const auto slowest = [alone](double seconds) {
    return alone ? seconds : mpi_session().max(seconds);
  };
  const Variant* winner = nullptr;
  double shortest = std::numeric_limits<double>::infinity();
  std::string reasons;
  for (const Variant& variant : candidates) {
    const std::string key = key_of(problem, variant, resources);
    auto known = verified_.find(key);
    if (known == verified_.end()) {
      const ProblemInfo& info = problem.info();
      const ActiveSubject active(
          fmt::format("{} {} {} {}, {}", info.primitive, info.direction, variant.name, info.shape,
                      counted(resources.threads, "thread")),
          "verified", 0);
      std::unique_ptr<Runner> runner;
      const Verdict verdict = verify(problem, variant, resources, runner);
      if (verdict.outcome == Outcome::failed)
        throw std::runtime_error(
            fmt::format("{} fails on {}: {}", variant.name, problem.info().name, verdict.reason));
      std::string why = verdict.outcome == Outcome::unavailable ? verdict.reason : "";
      if (!alone) why = mpi_session().failure(why);  // all ranks leave it out
      if (!why.empty()) {
        reasons += fmt::format("\n  {}: {}", variant.name, why);
        continue;
      }
      // The first run includes cold caches, and on a device the launch. A choice among several
      // candidates uses the best of a few more runs. Short ones are repeated ten times, whatever
      // they took first: the team of threads may have slept, and that must not rule out a rung.
      // Long ones have no further run, but for those of vendors: the first may load a library.
      constexpr double short_seconds = 5e-4, long_seconds = 0.1;
      const Place place = variant.info->place;
      // The slowest rank's: all ranks must make the same number of runs.
      double seconds = slowest(verdict.seconds);
      if (place == Place::cuda && candidates.size() > 1)
        seconds = slowest(time_run(*runner, place));
      const bool is_vendor = variant.info->technique == Technique::vendor;
      const int runs = candidates.size() == 1    ? 0
                       : seconds < short_seconds ? 10
                       : seconds < long_seconds  ? 3
                       : is_vendor               ? 1
                                                 : 0;
      for (int i = 0; i < runs && (seconds < short_seconds || seconds < 3 * shortest); ++i)
        seconds = std::min(seconds, slowest(time_run(*runner, place)));
      known = verified_.emplace(key, seconds).first;
    }
    if (known->second < shortest) shortest = known->second, winner = &variant;
  }
  if (winner == nullptr)
    throw NoVariant(fmt::format("{}: no variant can run:{}", problem.info().name, reasons));
  return *winner;
}

}  // namespace stepladder

// stepladder verify: verifies variants without timing them.
#include "harness/verify/verify.hpp"

#include <fmt/format.h>

#include <memory>

#include "bench/commands.hpp"
#include "bench/crash_report.hpp"
#include "bench/option_checks.hpp"
#include "bench/plugins.hpp"
#include "bench/progress.hpp"
#include "bench/selection.hpp"
#include "harness/io/counted.hpp"
#include "harness/io/file.hpp"
#include "harness/measure/machine.hpp"
#include "harness/measure/measure.hpp"
#include "harness/measure/work_record.hpp"
#include "harness/ranks/mpi_session.hpp"
#include "harness/results/run_folder.hpp"
#include "harness/verify/verified.hpp"
#include "kernels/common/opencl/devices.hpp"

namespace stepladder {
namespace {

struct VerifyOptions {
  Selection selection;
  int random = 0;
  std::uint64_t seed = 1;
  std::vector<int> threads = default_threads();
  std::string record;
};

struct Counts {
  int passed = 0, failed = 0, unavailable = 0, skipped = 0;
  double worst = 0;  // error over bound
  double least_bytes = 0;
  std::string smallest_failed;  // of several: what failed on the problem with the least operands
  DeviceTally on_device;
};

void verify_problem(Case& problem, const std::vector<Variant>& variants,
                    const VerifyOptions& options, Counts& counts) {
  const bool reports = mpi_session().rank() == 0;
  const ProblemInfo& info = problem.info();
  const Machine machine = detect_machine();
  // All ranks decide alike.
  const double available = -mpi_session().max(-machine.memory_available_bytes);
  if (problem.memory_needed(1) * mpi_session().ranks() > 0.9 * available) {
    if (reports)
      fmt::print("SKIPPED {} {}: needs {:.1f} GiB; {:.1f} GiB are available{}\n", info.primitive,
                 info.name, problem.memory_needed(1) * mpi_session().ranks() / 0x1p30,
                 available / 0x1p30,
                 machine.memory_limit.empty() ? "" : " under " + machine.memory_limit);
    ++counts.skipped;
    for (const Variant& variant : variants) counts.on_device.left_out(variant);
    return;
  }
  for (const bool on_device : {false, true}) {  // where their operands are
    std::vector<Variant> here;
    for (const Variant& variant : variants)
      if ((variant.info->place == Place::cuda) == on_device) here.push_back(variant);
    if (here.empty() || (on_device && device() == nullptr)) continue;
    problem.allocate(1, on_device ? device() : nullptr);
    // Each variant at each number of threads is one plan, which runs on every filling.
    struct Trial {
      const Variant* variant;
      int threads;
      std::unique_ptr<Runner> plan{};
      bool ended = false;
    };
    std::vector<Trial> trials;
    for (const Variant& variant : here)
      for (const int threads : variant.info->threaded ? options.threads : std::vector<int>{1})
        trials.push_back({&variant, threads});
    for (const Filling& filling : fillings(problem, here, options.seed)) {
      problem.fill(filling.tier, filling.seed);
      for (Trial& trial : trials) {
        if (mpi_session().max(interrupted ? 1 : 0) > 0) throw Interrupted{};
        if (trial.ended ||
            (filling.tier == Tier::exact && !takes_exact_tier(problem, *trial.variant->info)))
          continue;
        const ActiveSubject active(
            fmt::format("{} {} {} {}, {}", info.primitive, info.direction, trial.variant->name,
                        info.name, counted(trial.threads, "thread")),
            "verified", 0);
        const Verdict verdict = verify(problem, *trial.variant,
                                       {trial.threads, mpi_session().communicator()}, trial.plan);
        trial.ended = verdict.outcome != Outcome::passed;
        counts.passed += verdict.outcome == Outcome::passed;
        counts.unavailable += verdict.outcome == Outcome::unavailable;
        counts.worst = std::max(counts.worst, verdict.error_ratio);
        if (verdict.outcome != Outcome::failed) continue;
        ++counts.failed;
        counts.on_device.failed(*trial.variant);
        const std::string what =
            fmt::format("{} {} {} {} ({}), {} tier, {}: {}", info.primitive, info.direction,
                        trial.variant->name, info.name, info.shape,
                        filling.tier == Tier::exact ? "exact" : "accuracy",
                        counted(trial.threads, "thread"), verdict.reason);
        if (reports) fmt::print("FAILED {}\n", what);
        if (counts.smallest_failed.empty() || problem.operand_bytes() < counts.least_bytes) {
          counts.smallest_failed = what;
          counts.least_bytes = problem.operand_bytes();
        }
        if (on_device && device_is_lost())
          throw DeviceLost(fmt::format("{} {}", info.primitive, trial.variant->name));
      }
    }
    for (const Trial& trial : trials)
      if (!trial.ended) counts.on_device.passed(*trial.variant);
  }
}

// Adds the results to the file of --record. Several processes may record in one file.
void record(const DeviceTally& tally, const std::vector<Variant>& variants,
            const std::string& path) {
  if (mpi_session().rank() != 0) return;
  const FolderLock lock(path);
  VerifiedFile file(path);
  const std::vector<std::string> not_passed =
      tally.record(variants, source_digests(), device()->name(), utc_time().substr(0, 10), file);
  file.save();
  for (const std::string& sentence : not_passed)
    fmt::print("{}: not recorded as verified: {}\n", path, sentence);
}

// Verifies the variants on the problems of the suites, then on random ones.
Counts verify_variants(const Work& work, const std::vector<Variant>& variants,
                       const VerifyOptions& options) {
  const PrimitiveType* type = work.type;
  const std::string what = variants.size() == 1
                               ? fmt::format("{} {}", type->name(), variants.front().name)
                               : type->name();
  Random random(options.seed, type->name());
  int drawn = 0;
  Counts counts;
  ProgressLine progress(fmt::format("verify {}", what),
                        work.problems.size() + static_cast<std::size_t>(options.random));
  try {
    for (const auto& problem : work.problems) {
      verify_problem(*problem, variants, options, counts);
      problem->release();
      progress.advance(problem->info().name);
    }
    // Problems that no variant here supports do not count. The search ends after three times as
    // many.
    const int most = 3 * options.random;
    for (int taken = 0; taken < options.random && drawn < most; ++drawn) {
      const std::unique_ptr<Case> problem = type->random_case(random, mpi_session().ranks());
      const auto before = counts.passed + counts.failed;
      verify_problem(*problem, variants, options, counts);
      if (counts.passed + counts.failed == before) continue;
      ++taken;
      progress.advance(problem->info().name);
    }
  } catch (...) {  // DeviceLost, Interrupted
    for (const Variant& variant : variants) counts.on_device.left_out(variant);
    if (!options.record.empty()) record(counts.on_device, variants, options.record);
    throw;
  }
  progress.finish();
  if (!options.record.empty()) record(counts.on_device, variants, options.record);
  if (mpi_session().rank() != 0) return counts;
  if (counts.failed > 1) fmt::print("SMALLEST that failed: {}\n", counts.smallest_failed);
  fmt::print(
      "{:<12} {}, {}: {} checks passed, {} failed, {} unavailable, {} skipped; largest error "
      "{:.3f} of its bound\n",
      what, counted(work.problems.size() + static_cast<std::size_t>(drawn), "problem"),
      counted(variants.size(), "variant"), counts.passed, counts.failed, counts.unavailable,
      counts.skipped, counts.worst);
  return counts;
}

int run(const VerifyOptions& options) {
  report_crashes();
  if (!options.record.empty()) {
    if (device() == nullptr)
      throw std::runtime_error(
          fmt::format("--record {}: records results of a device, and here is {}", options.record,
                      device_status()));
    record({}, {}, options.record);  // an error shows before anything is verified
  }
  int passed = 0, failed = 0;
  const auto verify_some = [&](const Work& work, const std::vector<Variant>& variants) {
    const Counts counts = verify_variants(work, variants, options);
    passed += counts.passed;
    failed += counts.failed;
  };
  const std::vector<Work> works = options.selection.work(options.random == 0 ? "layers" : "");
  if (opencl::expects_rungs()) opencl::chosen_device();  // throws if it names none
  for (const Work& work : works) {
    if (options.record.empty()) {
      verify_some(work, work.variants);
      continue;
    }
    // One after another: a verification that is cut has recorded the variants before.
    for (const Variant& variant : work.variants) verify_some(work, {variant});
  }
  if (failed > 0) return 1;
  if (passed > 0) return 0;
  if (mpi_session().rank() == 0)
    fmt::print(
        stderr,
        "stepladder: nothing was verified: each problem was skipped, or no variant of it can "
        "run here\n");
  return nothing_verified;
}

}  // namespace

Command verify_command(CLI::App& program) {
  CLI::App* app =
      program.add_subcommand("verify", "Verify variants on a suite or on random problems");
  auto options = std::make_shared<VerifyOptions>();
  options->selection.add_options(*app);
  add_plugin_options(*app, options->selection.plugins);
  app->add_option(
         "--random", options->random,
         "Number of random problems per primitive, with or without a suite; problems that no "
         "variant here supports do not count")
      ->transform(whole_number(0, 100'000'000));
  app->add_option("--seed", options->seed, "Seed of random problems and data")
      ->transform(whole_number(0, most_seed));
  add_threads(*app, options->threads, "Numbers of threads, for example 1,2");
  app->add_option(
      "--record", options->record,
      "Record in this file, a verified.json, which CUDA rungs passed on the device of this "
      "machine");
  return {app, [options] {
            options->threads = without_repeats(options->threads);
            return run(*options);
          }};
}

}  // namespace stepladder

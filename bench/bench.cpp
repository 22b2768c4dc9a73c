// stepladder bench: verifies variants, times them, and writes a run folder.
#include "bench/bench.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "bench/commands.hpp"
#include "bench/option_checks.hpp"
#include "bench/plugins.hpp"
#include "bench/progress.hpp"
#include "bench/row_table.hpp"
#include "bench/supervisor.hpp"
#include "harness/io/json_text.hpp"
#include "harness/io/shell.hpp"
#include "harness/ranks/mpi_session.hpp"
#include "harness/results/problem_bench.hpp"
#include "harness/verify/verify.hpp"

namespace stepladder {
namespace {

// A sentence for root, who cannot use mpirun without both variables.
std::string advice_for_root() {
  const auto is_set = [](const char* name) { return std::getenv(name) != nullptr; };
  if (geteuid() != 0 ||
      (is_set("OMPI_ALLOW_RUN_AS_ROOT") && is_set("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")))
    return {};
  return "\nAs root, Open MPI also needs OMPI_ALLOW_RUN_AS_ROOT=1 and "
         "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 in the environment.";
}

// The work that can be done on the present ranks.
std::vector<Work> work_of(const BenchCommand& options) {
  std::vector<Work> work = options.selection.work("layers");
  const int ranks = mpi_session().ranks();
  const auto lacks_ranks = [&](const Work& w) {  // processes, or several GPUs
    return w.type->needs_ranks() && ranks == 1 && device_count() < 2;
  };
  for (const Work& w : work) {
    const char* name = w.type->name();
    if (!w.type->runs_over_ranks() && ranks > 1)
      throw std::runtime_error(fmt::format("{} runs on one rank; start it without mpirun", name));
    if (!lacks_ranks(w)) continue;
    const std::string how = fmt::format(
        "{} needs two ranks or more: mpirun -np 2 build/stepladder bench {}", name, name);
    if (work.size() == 1) throw std::runtime_error(how + advice_for_root());
    fmt::print(stderr, "left out: {} --out DIR --resume{}\n", how, advice_for_root());
  }
  std::erase_if(work, lacks_ranks);
  return work;
}

std::string name_of(const Case& problem) {
  return problem.info().primitive + " " + problem.info().name;
}

std::string resume_command(const std::filesystem::path& folder) {
  std::string command = command_line();
  if (mpi_session().ranks() > 1)
    command = fmt::format("mpirun -np {} {}", mpi_session().ranks(), command);
  if (command.find(" --resume") == std::string::npos) command += " --resume";
  if (command.find(" --out") == std::string::npos)
    command += " --out " + shell_quoted(folder.string());
  return command;
}

// Which problem the subject is of.
bool is_of(const Case& problem, const std::string& subject) {
  const ProblemInfo& info = problem.info();
  return subject.starts_with(fmt::format("{}/{}/{}/", info.primitive, info.direction, info.name));
}

int run(BenchCommand& options) {
  // Errors in the arguments show before anything is measured.
  const std::vector<Work> work = work_of(options);
  std::size_t total = 0;
  for (const Work& w : work) total += w.problems.size();
  options.bench.problems_argument = options.selection.problems_argument();
  options.bench.plugins = options.selection.plugins;
  options.bench.threads = without_repeats(options.bench.threads);

  std::vector<int> ceiling_threads = options.bench.threads;
  if (std::find(ceiling_threads.begin(), ceiling_threads.end(), 1) == ceiling_threads.end())
    ceiling_threads.push_back(1);
  if (mpi_session().ranks() > 1) options.bench.threads = ceiling_threads = {1};
  constexpr int of_device = 0;
  if (device() != nullptr) ceiling_threads.push_back(of_device);
  Run run({.directory = options.out,
           .resume = options.resume,
           .command = command_line(),
           .seed = options.bench.seed,
           .threads = ceiling_threads,
           .restarts = options.bench.after_crash.restarts});
  ProblemBench bench(run, options.bench);
  if (const std::string& suspect = options.bench.after_crash.suspect; !suspect.empty()) {
    for (const Work& w : work)
      for (const auto& problem : w.problems)
        if (is_of(*problem, suspect)) bench.find_culprit(*problem, w.variants);
    return 0;
  }
  ProgressLine progress("bench", total, true);
  try {
    for (const Work& w : work)
      for (const auto& problem : w.problems) {
        bench.measure(*problem, w.variants);
        progress.advance(name_of(*problem));
      }
    bench.measure_again([&](const Case& problem, double share_left) {
      progress.advance_again(name_of(problem), share_left);
    });
  } catch (const Interrupted&) {
    progress.finish();
    bench.settle();
    run.save();
    if (run.writes())
      fmt::print(stderr, "Interrupted. Finished rows are in {}; resume with:\n  {}\n",
                 run.folder().directory().string(), resume_command(run.folder().directory()));
    throw;
  } catch (const DeviceLost&) {
    progress.finish();
    bench.settle();
    run.save();
    throw;
  }
  progress.finish();
  run.save();
  if (!run.writes()) return bench.counts().failed > 0 ? 1 : 0;

  const BenchCounts& counts = bench.counts();
  const std::filesystem::path folder = run.folder().directory();
  if (options.report == Report::json)
    fmt::print("{}\n", json_text(run.folder().read_json("summary.json"), 1));
  else if (options.report == Report::tables)
    print_tables(read_rows(folder / "summary.csv", work));
  fmt::print(options.report == Report::json ? stderr : stdout,
             "{} rows ok ({} of them noisy, {} disturbed), {} failed, {} unavailable, {} "
             "skipped{}\n{}\n{}\n",
             counts.ok, counts.flagged, counts.disturbed, counts.failed, counts.unavailable,
             counts.skipped,
             counts.kept > 0 ? fmt::format(", {} kept from before", counts.kept) : "",
             run.meter().noise().sentence(), (folder / "summary.csv").string());
  if (counts.failed > 0) return 1;
  return options.then ? options.then() : 0;
}

}  // namespace

void add_run_options(CLI::App& app, BenchCommand& command) {
  app.add_option("--repetitions", command.bench.measure.repetitions, "Repetitions for each row")
      ->transform(whole_number(2, 1000));
  app.add_option("--budget", command.bench.measure.budget_seconds,
                 "Seconds of timing for each row; slow rows get fewer repetitions")
      ->check(positive_number());
  app.add_option("--seed", command.bench.seed, "Seed of the data")
      ->transform(whole_number(0, most_seed));
  app.add_option("--out", command.out, "Run folder; results/local/<time> by default");
  app.add_flag("--resume", command.resume, "Continue the run in that folder");
  app.add_option("--time-limit", command.time_limit,
                 "Seconds after which a call that does not return costs its row")
      ->check(positive_number());
  app.add_option(
         "--memory-limit", command.memory_limit,
         "GiB of memory beyond which a variant is ended; 90 % of what is available by default")
      ->check(positive_number());
}

int run_bench(const std::shared_ptr<BenchCommand>& options) {
  if (options->out.empty()) options->out = default_run_directory().string();
  if (MpiSession::launched_by_mpirun()) {
    const RecordOfRanks record(options->out, options->after_crash);
    options->bench.after_crash = record.lost();
    return run(*options);
  }
  if (options->after_crash)
    throw std::runtime_error(
        "--after-crash is for ranks; one process goes on by itself after a crash");
  const double memory = options->memory_limit > 0 ? options->memory_limit * 0x1p30
                                                  : 0.9 * detect_machine().memory_available_bytes;
  const Limits limits{options->time_limit, memory};
  return supervise(limits, [options](const AfterCrash& after) {
    options->bench.after_crash = after;
    options->resume = options->resume || after.restarts > 0;
    return run(*options);
  });
}

Command bench_command(CLI::App& program) {
  CLI::App* app = program.add_subcommand("bench", "Verify and time variants, write CSV and JSON");
  auto options = std::make_shared<BenchCommand>();
  options->bench.threads = default_threads();
  options->selection.add_options(*app);
  add_plugin_options(*app, options->selection.plugins);
  add_threads(*app, options->bench.threads, "Numbers of threads, for example 1,2");
  add_run_options(*app, *options);
  app->add_flag("--cold", options->bench.cold, "Rotate operands beyond the last-level cache");
  app->add_flag("--again", options->bench.again,
                "Measure the rows of that folder again and replace them")
      ->needs("--resume");
  app->add_flag("--after-crash", options->after_crash,
                "Over ranks: the variant at which the last command in that folder was lost gets a "
                "failed row, and the others are measured")
      ->needs("--resume");
  options->report = Report::tables;
  CLI::Option* quiet = app->add_flag_callback(
      "--quiet", [options] { options->report = Report::counts; }, "Print no tables at the end");
  app->add_flag_callback(
         "--json", [options] { options->report = Report::json; },
         "Print summary.json at the end instead of tables, and everything else to stderr")
      ->excludes(quiet);
  return {app, [options] { return run_bench(options); }};
}

}  // namespace stepladder

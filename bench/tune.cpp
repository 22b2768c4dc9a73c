// stepladder tune: measures which rung is best for each layer and direction of a network, and
// writes the choices to a file for --tuned of step and train.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "bench/commands.hpp"
#include "bench/crash_report.hpp"
#include "bench/networks.hpp"
#include "bench/option_checks.hpp"
#include "bench/selection.hpp"
#include "harness/execution/network.hpp"
#include "harness/io/counted.hpp"
#include "harness/measure/machine.hpp"
#include "harness/measure/measure.hpp"
#include "harness/ranks/mpi_session.hpp"

namespace stepladder {
namespace {

struct TuneOptions {
  std::vector<std::string> networks = {"mlp", "mnist_cnn", "cifar_cnn"};
  std::vector<int> threads = default_threads();
  MeasureOptions measure{.repetitions = 11, .budget_seconds = 0.05};
  std::uint64_t seed = 1;
  std::string out = "results/local/tuned.csv";
};

// The time of one candidate.
struct Timed {
  std::string variant;
  double median_seconds;
};

// Measures the candidates of one choice in turns; the fastest first. A single one is not measured.
std::vector<Timed> measure_choice(const PlanStore::Choice& choice, Meter& meter,
                                  const MeasureOptions& options) {
  std::vector<std::unique_ptr<Runner>> runners;
  std::vector<Subject> subjects;
  std::vector<Timed> timed;
  for (const Variant& variant : choice.candidates) {
    try {
      runners.push_back(choice.problem->plan(variant, choice.resources));
    } catch (const Unsupported&) {
      continue;  // another candidate supports the problem, or the network could not be made
    }
    subjects.push_back({.name = fmt::format("tune/{}/{}/{}", choice.problem->info().name,
                                            choice.resources.threads, variant.name),
                        .run = [runner = runners.back().get()](std::int64_t) { runner->run(0); },
                        .threads = choice.resources.threads});
    timed.push_back({variant.name, 0});
  }
  if (subjects.size() < 2) return timed;
  const std::vector<Measured> measured = meter.measure(subjects, options);
  for (std::size_t i = 0; i < measured.size(); ++i) {
    if (!measured[i].error.empty())
      throw std::runtime_error(subjects[i].name + ": " + measured[i].error);
    timed[i].median_seconds = summarize(measured[i].seconds()).median;
  }
  std::sort(timed.begin(), timed.end(),
            [](const Timed& a, const Timed& b) { return a.median_seconds < b.median_seconds; });
  return timed;
}

int run(const TuneOptions& options) {
  report_crashes();
  if (mpi_session().ranks() > 1)
    throw std::runtime_error("tune runs on one rank; start it without mpirun");
  const std::string cpu_model = detect_machine().cpu_model;
  const std::filesystem::path file = options.out;
  Tuning tuning = std::filesystem::exists(file) ? Tuning(file, cpu_model) : Tuning();
  if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path());
  tuning.save(file, cpu_model);  // errors in writing show before anything is measured

  nlohmann::json records = nlohmann::json::array();
  Meter meter(records);
  for (const std::string& name : options.networks) {
    const network::NetworkDescription description = NetworkChoice{.name = name}.load();
    for (const int threads : threads_that_run(options.threads)) {
      PlanStore plans(options.seed);
      const TrainableNetwork network(description, UseSpec("best"),
                                     {.threads = threads, .seed = options.seed}, plans);
      fmt::print("{}, {}\n", description.name, counted(threads, "thread"));
      for (const PlanStore::Choice& choice : plans.choices()) {
        const std::vector<Timed> timed = measure_choice(choice, meter, options.measure);
        if (timed.size() < 2) continue;  // there is nothing to choose
        const auto& [variant, seconds] = timed.front();
        tuning.set(choice.problem->info().name, threads, {variant, seconds});
        fmt::print("  {:<84} {:<22} {:9.1f} us, {:.2f}x {}\n", choice.problem->info().name, variant,
                   1e6 * seconds, timed[1].median_seconds / seconds, timed[1].variant);
      }
      tuning.save(file, cpu_model);
    }
  }
  fmt::print("{}\n{}\n", meter.noise().sentence(), file.string());
  return 0;
}

}  // namespace

Command tune_command(CLI::App& program) {
  CLI::App* app = program.add_subcommand(
      "tune", "Find the best rung of each layer, for --tuned of step and train");
  auto options = std::make_shared<TuneOptions>();
  app->add_option("--network", options->networks,
                  "mlp, mnist_cnn, cifar_cnn, alexnet or JSON files; the first three by default")
      ->delimiter(',');
  add_threads(*app, options->threads, "Numbers of threads inside an operation, for example 1,2");
  app->add_option("--repetitions", options->measure.repetitions, "Repetitions for each candidate")
      ->transform(whole_number(2, 1000));
  app->add_option("--budget", options->measure.budget_seconds,
                  "Seconds of timing for each candidate")
      ->check(positive_number());
  app->add_option("--seed", options->seed, "Seed of weights and data")
      ->transform(whole_number(0, most_seed));
  app->add_option(
      "--out", options->out,
      "File to write; results/local/tuned.csv by default. Its choices are kept unless they are "
      "measured again");
  return {app, [options] { return run(*options); }};
}

}  // namespace stepladder

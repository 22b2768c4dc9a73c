// stepladder step: times one training step by layer and phase, beside the time of each plan alone.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <tuple>

#include "bench/attribution_report.hpp"
#include "bench/commands.hpp"
#include "bench/crash_report.hpp"
#include "bench/networks.hpp"
#include "bench/option_checks.hpp"
#include "bench/selection.hpp"
#include "bench/step_trace.hpp"
#include "harness/adapters/primitives.hpp"
#include "harness/execution/measured_step.hpp"
#include "harness/io/file.hpp"
#include "harness/measure/machine.hpp"
#include "harness/problem/random.hpp"
#include "harness/ranks/mpi_session.hpp"
#include "harness/results/result_columns.hpp"
#include "kernels/common/lattice.hpp"

namespace stepladder {
namespace {

struct StepOptions {
  NetworkChoice network;
  std::vector<std::string> use = {"best"};
  bool ablate = false, attribute = false;
  std::string trace;  // file; empty: none
  std::vector<int> threads = default_threads(), inter = {1};
  std::vector<std::string> graph = {"on"};
  MeasureOptions measure{.repetitions = 11, .budget_seconds = 1.0};
  RunChoice run;
  BestOptions best;
};

// The time of a step does not depend on the images, so they are random. Every rank has other ones.
void fill_batch(TrainableNetwork& network, std::uint64_t seed) {
  Random random(seed, fmt::format("batch of rank {}", mpi_session().rank()));
  for (float& pixel : network.images()) pixel = random.uniform(-1.0F, 1.0F);
  for (std::uint8_t& label : network.labels())
    label = static_cast<std::uint8_t>(
        random.integer(0, std::min<std::int64_t>(network.description().classes, 256) - 1));
}

// The rung that ablation swaps in: the serial one, or the first rung on a device.
std::string lowest_rung(const PrimitiveType& type, Place place) {
  if (place == Place::cpu) return "serial";
  for (const Variant& variant : type.variants())
    if (variant.info->place == place) return variant.name;
  throw std::runtime_error(fmt::format("{} has no rung on the device", type.name()));
}

// One use with all numbers of threads (the first alone if its rungs run in one) and of operations
// at once; on a device, all graph settings.
std::vector<Configuration> configurations_of(const StepOptions& options, const UseSpec& use,
                                             Place place) {
  std::vector<Configuration> all;
  if (place == Place::cuda) {
    for (const std::string& graph : options.graph)
      all.push_back({use.text(),
                     graph == "on" ? "graph" : "single",
                     {.seed = options.run.seed, .graph = graph == "on"},
                     nullptr});
    return all;
  }
  const bool ranks = mpi_session().ranks() > 1, sweep = options.inter != std::vector<int>{1};
  std::vector<int> all_threads = options.threads;
  if (!use.is_threaded()) all_threads.resize(1);
  for (const int threads : all_threads)
    for (const int inter : options.inter) {
      const std::string mode = ranks   ? "synchronous"
                               : sweep ? fmt::format("inter={}", inter)
                                       : "single";
      all.push_back({use.text(),
                     mode,
                     {.threads = threads, .inter = inter, .seed = options.run.seed},
                     nullptr});
    }
  return all;
}

// Throws what place_of() throws: errors in the names of rungs show before anything is measured.
std::vector<Configuration> configurations_of(const StepOptions& options,
                                             const network::NetworkDescription& description) {
  std::vector<Configuration> all;
  for (const std::string& text : options.use) {
    const UseSpec use(text);
    const Place place = place_of(description, use);
    for (Configuration& plain : configurations_of(options, use, place)) {
      const NetworkOptions network_options = plain.options;
      all.push_back(std::move(plain));
      if (!options.ablate) continue;
      for (const PrimitiveType* type : primitives())
        if (!type->needs_ranks())
          all.push_back({use.with(type->name(), lowest_rung(*type, place)).text(), "ablate",
                         network_options, nullptr});
    }
  }
  return all;
}

// Leaves out the configurations that a resumed run has measured: those that have a total row.
void leave_out_measured(std::vector<Configuration>& configurations, const std::string& network,
                        const Run& run) {
  std::set<std::vector<std::string>> measured;
  if (run.writes() && run.folder().has(step_columns())) {
    const CsvFile file = run.folder().read(step_columns());
    for (const CsvRow& row : file.rows())
      if (row.text("layer") == "total")
        measured.insert({row.text("network"), row.text("use"), row.text("mode"),
                         row.text("threads"), row.text("ranks")});
  }
  std::erase_if(configurations, [&](const Configuration& c) {
    const bool known = measured.contains({network, c.use, c.mode, std::to_string(c.options.threads),
                                          std::to_string(mpi_session().ranks())});
    return mpi_session().broadcast(std::int64_t{known}) != 0;
  });
}

// Two operations at once are two teams of threads. The scheduler places them.
void allow_two_teams(const StepOptions& options) {
  if (*std::max_element(options.inter.begin(), options.inter.end()) == 1) return;
  if (mpi_session().ranks() > 1)
    throw std::runtime_error("--inter above 1 runs on one rank; start it without mpirun");
  unpin_threads();
}

// What --attribute switches in all operations at once. `loops` is what each primitive does to its
// loops before anything else: cache blocking, unfolding, separable pooling.
const std::vector<std::string> step_techniques = {"loops", "vectors", "tile", "packing", "threads"};

// The index in step_techniques; -1: never switched on.
int technique_of(Idea idea) {
  constexpr Idea ideas[] = {Idea::algorithm, Idea::vectors, Idea::register_tile, Idea::packing,
                            Idea::threads};
  const Idea* found = std::ranges::find(ideas, idea == Idea::cache_blocking ? ideas[0] : idea);
  return found == std::end(ideas) ? -1 : static_cast<int>(found - ideas);
}

// The corner of each lattice with the techniques of `bits`; what has no lattice uses its OpenMP,
// SIMD or serial rung.
std::string use_of_techniques(unsigned bits) {
  const auto is_on = [bits](int technique) {
    return technique >= 0 && (bits >> technique & 1) != 0;
  };
  std::string use = !is_on(technique_of(Idea::vectors))  ? "serial"
                    : is_on(technique_of(Idea::threads)) ? "openmp"
                                                         : "simd";
  for (const PrimitiveType* type : primitives()) {
    const std::vector<Variant> corners = type->corners();
    if (corners.empty()) continue;
    use += fmt::format(",{}=lattice", type->name());
    for (const Switch& on : corners.front().info->lattice->switches)
      if (is_on(technique_of(on.idea))) use += std::string("_") + on.name;
  }
  return use;
}

// Measures the step with every combination of techniques and writes RUN/attribution.
int attribute(const StepOptions& options) {
  if (mpi_session().ranks() > 1)
    throw std::runtime_error("--attribute runs on one rank; start it without mpirun");
  const network::NetworkDescription description = options.network.load();
  const int threads = threads_that_run({options.threads.back()}).back();
  RunOptions run_options = options.run.options();
  run_options.directory = attribution_folder(options.run.out);
  Run run(run_options);
  PlanStore plans(options.run.seed, {});
  std::vector<Configuration> configurations;
  for (unsigned bits = 0; bits < 1U << step_techniques.size(); ++bits) {
    const UseSpec use(use_of_techniques(bits));
    const bool is_threaded = (bits >> technique_of(Idea::threads) & 1) != 0;
    configurations.push_back(
        {use.text(), "attribution",
         NetworkOptions{.threads = is_threaded ? threads : 1, .seed = options.run.seed}, nullptr});
    Configuration& c = configurations.back();
    c.network = std::make_unique<TrainableNetwork>(description, use, c.options, plans);
    fill_batch(*c.network, options.run.seed);
  }
  std::vector<CornerTime> times;
  std::vector<std::vector<std::string>> rows;
  for (const Summary& total : measure_whole_steps(configurations, run, options.measure)) {
    const Configuration& c = configurations[times.size()];
    times.push_back({total.median, total.ci_low, total.ci_high});
    rows.push_back(step_columns().line({.network = description.name,
                                        .use = c.use,
                                        .mode = c.mode,
                                        .threads = c.options.threads,
                                        .device = "cpu",
                                        .layer = "total",
                                        .phase = "total",
                                        .variant = "",
                                        .median_seconds = total.median,
                                        .predicted_seconds = StepCsvRow::unknown,
                                        .ci_low = total.ci_low,
                                        .ci_high = total.ci_high}));
  }
  Table table = run.folder().table(step_columns());
  table.remove_rows(
      [&](const CsvRow& row) {
        return row.text("network") == description.name && row.text("mode") == "attribution";
      },
      rows);
  report_attribution(run.folder().directory(),
                     {.primitive = "step",
                      .direction = "",
                      .problem = description.name,
                      .shape = fmt::format("batch {}", description.batch),
                      .threads = threads},
                     step_techniques, times, 0);
  run.save();
  fmt::print("\n{}\n", (run.folder().directory() / "attribution.csv").string());
  return 0;
}

int run(StepOptions& options) {
  report_crashes();
  allow_two_teams(options);
  options.threads = threads_that_run(options.threads);
  auto [description, known, configurations] = mpi_session().agree([&] {
    network::NetworkDescription read = options.network.load();
    KnownChoices choices = options.best.load();
    std::vector<Configuration> all = configurations_of(options, read);
    return std::tuple(std::move(read), std::move(choices), std::move(all));
  });
  require_same_inputs(options.network, options.best);
  Run run(options.run.options());
  leave_out_measured(configurations, description.name, run);
  if (configurations.empty()) {
    if (run.writes()) fmt::print("{}: these steps are measured already\n", description.name);
    return 0;
  }
  PlanStore plans(options.run.seed, known);
  for (Configuration& c : configurations) {
    c.options.alternatives = place_of(description, UseSpec(c.use)) == Place::cpu;
    c.network = std::make_unique<TrainableNetwork>(description, UseSpec(c.use), c.options, plans);
    fill_batch(*c.network, options.run.seed);
    choose_within_step(*c.network);
  }
  const std::vector<StepResult> results = measure_steps(configurations, run, options.measure);
  constexpr const char* trace_file = "trace.json";
  StepTrace trace(run.writes() ? run.folder().read_json(trace_file) : nlohmann::json());
  for (Configuration& configuration : configurations) trace.add(configuration);
  if (!run.writes()) return 0;

  Table table = run.folder().table(step_columns());
  fmt::print("{}, batch {} (random images, constant weights)\n", description.name,
             description.batch);
  for (std::size_t c = 0; c < configurations.size(); ++c) {
    const Configuration& configuration = configurations[c];
    const int threads = configuration.options.threads;
    const bool on_device = configuration.network->place() == Place::cuda;
    const std::string device_name = on_device ? device()->name() : "cpu";
    std::vector<std::vector<std::string>> rows;
    for (const StepRow& row : results[c].rows) {
      StepCsvRow line{.network = description.name,
                      .use = configuration.use,
                      .mode = configuration.mode,
                      .threads = threads,
                      .ranks = mpi_session().ranks(),
                      .device = device_name,
                      .layer = row.layer,
                      .phase = row.phase,
                      .variant = row.variant,
                      .median_seconds = row.median_seconds,
                      .predicted_seconds = row.predicted_seconds};
      if (&row == &results[c].rows.back()) {
        line.ci_low = results[c].total.ci_low;
        line.ci_high = results[c].total.ci_high;
        line.processor_load = results[c].processor_load;
      }
      rows.push_back(step_columns().line(line));
    }
    table.append(rows);
    const StepRow& total = results[c].rows.back();
    fmt::print(
        "  {:<28} {:<12} {}: {:9.3f} ms a step ({:.3f} to {:.3f}); its plans alone {:9.3f} ms\n",
        configuration.use, configuration.mode,
        on_device ? device_name : fmt::format("{} thread{}", threads, threads == 1 ? " " : "s"),
        1e3 * total.median_seconds, 1e3 * results[c].total.ci_low, 1e3 * results[c].total.ci_high,
        1e3 * total.predicted_seconds);
  }
  run.folder().write_text(trace_file, trace.text());
  run.save();
  fmt::print("{}\n", (run.folder().directory() / "step.csv").string());
  if (!options.trace.empty()) replace_file(options.trace, trace.text());
  fmt::print(
      "{}: open it in https://ui.perfetto.dev\n",
      options.trace.empty() ? (run.folder().directory() / trace_file).string() : options.trace);
  return 0;
}

}  // namespace

Command step_command(CLI::App& program) {
  CLI::App* app = program.add_subcommand("step", "Time one training step, layer by layer");
  auto options = std::make_shared<StepOptions>();
  options->network.add_to(*app, "Batch size, instead of the network's own");
  app->add_option("--use", options->use,
                  "best, bf16 (best, and operands of products rounded to bf16), compiler, vendor, "
                  "opencl, cuda, "
                  "cuda_tf32 or a rung for all primitives, and exceptions, for example "
                  "best,convolution=direct; "
                  "repeat the option to measure several in turns");
  options->best.add_to(*app);
  app->add_flag("--ablate", options->ablate,
                "Also measure with one primitive at a time on its serial rung");
  app->add_flag(
         "--attribute", options->attribute,
         "Measure every combination of techniques instead, and print what each buys; threads: "
         "the last of --threads")
      ->excludes("--use")
      ->excludes("--ablate");
  add_threads(*app, options->threads, "Numbers of threads inside an operation, for example 1,2");
  add_numbers(*app, "--inter", options->inter, "Numbers of operations at once, for example 1,2", 2)
      ->excludes("--attribute");
  app->add_option(
         "--trace", options->trace,
         "A copy of trace.json of the run folder, which Perfetto and chrome://tracing show: "
         "operations of one step of each configuration, by rank and thread")
      ->excludes("--attribute");
  app->add_option("--graph", options->graph,
                  "On a device: launch the step as one CUDA graph, for example on,off")
      ->delimiter(',')
      ->check(CLI::IsMember({"on", "off"}));
  app->add_option("--repetitions", options->measure.repetitions,
                  "Repetitions for each configuration")
      ->transform(whole_number(2, 1000));
  app->add_option("--budget", options->measure.budget_seconds,
                  "Seconds of timing for each configuration")
      ->check(positive_number());
  options->run.add_to(*app, "Seed of weights and data");
  return {app, [options] { return options->attribute ? attribute(*options) : run(*options); }};
}

}  // namespace stepladder

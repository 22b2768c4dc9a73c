#include "harness/execution/measured_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <numeric>
#include <random>
#include <span>

namespace stepladder {
namespace {

std::string subject_name(const Configuration& c) {
  return fmt::format("step/{}/{}/{}/threads:{}", c.network->description().name, c.use, c.mode,
                     c.options.threads);
}

Clock clock_of_run() { return mpi_session().ranks() > 1 ? Clock::ranks : Clock::wall; }

// The clock of single plans: on a device they are asynchronous.
Clock clock_of_plans(const Configuration& c) {
  return c.network->place() == Place::cuda ? Clock::device : clock_of_run();
}

double seconds_of(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

struct FirstSteps {
  double seconds = 0;         // of one; 0 if unknown
  double processor_load = 0;  // CPU time of all threads of this process / (elapsed · processors)
};

// Of steps that are not timed: reading the clock of a process is a system call. Those of a long
// step are its warm-up too; a short one is warm the second time.
FirstSteps run_first(TrainableNetwork& network, int processors) {
  constexpr double least_seconds = 0.1;
  const auto run = [&]() -> FirstSteps {
    const double cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID), start = seconds_of(CLOCK_MONOTONIC);
    double elapsed = 0;
    int steps = 0;
    for (; elapsed < least_seconds; ++steps) {
      network.step(0.0);
      elapsed = seconds_of(CLOCK_MONOTONIC) - start;
    }
    const double used = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    return {elapsed / steps, used / (elapsed * processors)};
  };
  const FirstSteps first = run();
  return first.seconds < least_seconds ? run() : first;
}

// `first`: of each configuration. `after_each` is called with the index of the configuration after
// each step.
std::vector<Measured> measure_totals(std::vector<Configuration>& configurations,
                                     const std::vector<FirstSteps>& first, Run& run,
                                     const MeasureOptions& options,
                                     const std::function<void(std::size_t)>& after_each) {
  std::vector<Subject> steps;
  for (std::size_t c = 0; c < configurations.size(); ++c) {
    TrainableNetwork& network = *configurations[c].network;
    const bool on_device = network.place() == Place::cuda;
    steps.push_back({.name = subject_name(configurations[c]),
                     .run =
                         [&network, &after_each, c](std::int64_t) {
                           network.step(0.0);
                           after_each(c);
                         },
                     .clock = clock_of_run(),
                     .estimate_seconds = on_device ? 0 : first[c].seconds,
                     .on_device = on_device});
  }
  std::vector<Measured> totals = run.meter().measure(steps, options);
  for (std::size_t c = 0; c < configurations.size(); ++c)
    if (!totals[c].error.empty()) throw std::runtime_error(steps[c].name + ": " + totals[c].error);
  return totals;
}

// Runs one step for each turn, which names an alternative of each operation, and keeps the `most`
// fastest alternatives of each, the fastest first. The first turn runs twice before: to warm up,
// and to tell how long the step is. Before each turn a short step runs the same alternatives
// twice, untimed, so that each thread finds the weights in its own caches. A long step differs
// little from turn to turn: it takes a third of them, or a ninth.
void keep_fastest(std::size_t most, const std::vector<std::vector<std::size_t>>& turns,
                  TrainableNetwork& network) {
  std::vector<Operation>& operations = network.operations();
  std::vector<std::vector<std::vector<double>>> seconds(operations.size());  // [alternative]
  for (std::size_t i = 0; i < operations.size(); ++i)
    seconds[i].resize(operations[i].alternatives.size());
  const auto run = [&](const std::vector<std::size_t>& turn) {
    for (std::size_t i = 0; i < operations.size(); ++i)
      if (!seconds[i].empty()) operations[i].run = operations[i].alternatives[turn[i]].run;
    network.step(0.0);
  };
  constexpr double short_seconds = 1e-3, long_seconds = 0.1, longest_seconds = 0.5;
  run(turns.front());
  const double start = seconds_of(CLOCK_MONOTONIC);
  run(turns.front());
  const double step = mpi_session().max(seconds_of(CLOCK_MONOTONIC) - start);
  const bool is_short = step < short_seconds;
  const std::size_t count = turns.size() / (step > longest_seconds ? 9
                                            : step > long_seconds  ? 3
                                                                   : 1);
  for (const std::vector<std::size_t>& turn : std::span(turns).first(count)) {
    for (int before = 0; is_short && before < 2; ++before) run(turn);
    run(turn);
    for (std::size_t i = 0; i < operations.size(); ++i)
      if (!seconds[i].empty()) seconds[i][turn[i]].push_back(operations[i].seconds);
  }
  for (std::size_t i = 0; i < operations.size(); ++i) {
    std::vector<Alternative>& alternatives = operations[i].alternatives;
    std::vector<std::pair<double, std::size_t>> medians;
    for (std::size_t a = 0; a < alternatives.size(); ++a)
      medians.emplace_back(mpi_session().max(summarize(std::move(seconds[i][a])).median), a);
    std::ranges::sort(medians);
    medians.resize(std::min(most, medians.size()));
    std::vector<Alternative> fastest;
    for (const auto& [median, a] : medians) fastest.push_back(std::move(alternatives[a]));
    alternatives = std::move(fastest);
  }
}

}  // namespace

void choose_within_step(TrainableNetwork& network) {
  constexpr std::size_t samples = 9, apart = 4;
  std::vector<Operation>& operations = network.operations();
  std::size_t most = 0;
  for (const Operation& operation : operations)
    most = std::max(most, operation.alternatives.size());
  if (most == 0) return;

  // All alternatives, in an order of each operation's own (on all ranks the same): if the same ones
  // always met, each would be judged by where one other leaves its operands.
  std::vector<std::vector<std::size_t>> turns(samples * most,
                                              std::vector<std::size_t>(operations.size()));
  std::mt19937 random(1);
  std::vector<std::size_t> order(most);
  for (std::size_t i = 0; i < operations.size(); ++i)
    for (std::size_t turn = 0; turn < turns.size(); ++turn) {
      if (turn % most == 0) {
        std::iota(order.begin(), order.end(), 0);
        std::ranges::shuffle(order, random);
      }
      turns[turn][i] =
          order[turn % most] % std::max<std::size_t>(operations[i].alternatives.size(), 1);
    }
  keep_fastest(2, turns, network);

  // The second of one operation in four beside the first of the others: as it would be chosen.
  turns.assign(samples * apart, std::vector<std::size_t>(operations.size()));
  for (std::size_t turn = 0; turn < turns.size(); ++turn)
    for (std::size_t i = 0; i < operations.size(); ++i)
      turns[turn][i] = (turn + i) % apart == 0 && operations[i].alternatives.size() > 1 ? 1 : 0;
  keep_fastest(1, turns, network);

  for (Operation& operation : operations) {
    if (operation.alternatives.empty()) continue;
    Alternative& chosen = operation.alternatives.front();
    operation.variant = chosen.variant;
    operation.run = std::move(chosen.run);
    operation.prepare = std::move(chosen.prepare);
    operation.alternatives.clear();
  }
}

std::vector<Summary> measure_whole_steps(std::vector<Configuration>& configurations, Run& run,
                                         const MeasureOptions& options) {
  std::vector<Summary> totals;
  const std::vector<FirstSteps> unknown(configurations.size());
  for (const Measured& measured :
       measure_totals(configurations, unknown, run, options, [](std::size_t) {}))
    totals.push_back(summarize(measured.seconds()));
  return totals;
}

std::vector<StepResult> measure_steps(std::vector<Configuration>& configurations, Run& run,
                                      const MeasureOptions& options) {
  // The times of the operations within each step. On a device measuring them takes time and is done
  // in additional steps.
  std::vector<std::vector<std::vector<double>>> inside(configurations.size());
  const auto record_times = [&](std::size_t c) {
    for (std::size_t i = 0; i < inside[c].size(); ++i)
      inside[c][i].push_back(configurations[c].network->operations()[i].seconds);
  };
  for (std::size_t c = 0; c < configurations.size(); ++c)
    inside[c].resize(configurations[c].network->operations().size());
  std::vector<FirstSteps> first(configurations.size());
  for (std::size_t c = 0; c < configurations.size() && mpi_session().ranks() == 1; ++c)
    first[c] = run_first(*configurations[c].network, run.machine().threads_available);
  const std::vector<Measured> totals =
      measure_totals(configurations, first, run, options, [&](std::size_t c) {
        if (configurations[c].network->place() == Place::cpu) record_times(c);
      });
  for (int repetition = 0; repetition < options.repetitions; ++repetition)
    for (std::size_t c = 0; c < configurations.size(); ++c)
      if (configurations[c].network->place() == Place::cuda) {
        configurations[c].network->timed_step(0.0);
        record_times(c);
      }

  // The same plans on the same tensors, each in a loop by itself.
  std::vector<Subject> alone;
  for (std::size_t c = 0; c < configurations.size(); ++c)
    for (std::size_t i = 0; i < configurations[c].network->operations().size(); ++i) {
      const Configuration& configuration = configurations[c];
      const Operation& operation = configuration.network->operations()[i];
      alone.push_back({.name = fmt::format("{}/{}/{}/{}", subject_name(configuration), i,
                                           operation.layer, name_of(operation.phase)),
                       .run = [&operation](std::int64_t) { operation.run(); },
                       .clock = clock_of_plans(configuration),
                       .estimate_seconds = summarize(inside[c][i]).median});
    }
  const MeasureOptions brief{
      .repetitions = 5, .budget_seconds = options.budget_seconds / 20, .once_above = 0.1};
  const std::vector<Measured> predictions = run.meter().measure(alone, brief);

  std::vector<StepResult> results;
  std::size_t next = 0;
  for (std::size_t c = 0; c < configurations.size(); ++c) {
    StepResult result;
    result.total = summarize(totals[c].seconds());
    if (mpi_session().ranks() == 1) result.processor_load = first[c].processor_load;
    double sum = 0;
    for (std::size_t i = 0; i < inside[c].size(); ++i, ++next) {
      if (!predictions[next].error.empty())
        throw std::runtime_error(alone[next].name + ": " + predictions[next].error);
      const Operation& operation = configurations[c].network->operations()[i];
      const double predicted = summarize(predictions[next].seconds()).median;
      sum += predicted;
      result.rows.push_back({operation.layer, name_of(operation.phase), operation.variant,
                             summarize(inside[c][i]).median, predicted});
    }
    result.rows.push_back({"total", "total", "", result.total.median, sum});
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace stepladder

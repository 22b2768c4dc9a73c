// Times a training step and each of its operations, for several configurations.
#pragma once

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "harness/execution/network.hpp"
#include "harness/results/run.hpp"

namespace stepladder {

// A network with the rungs of a UseSpec and a number of threads.
struct Configuration {
  std::string use;
  // "single", "inter=2", "ablate", "synchronous" with several ranks, "graph" on a device
  std::string mode;
  NetworkOptions options;
  std::unique_ptr<TrainableNetwork> network;
};

struct StepRow {
  std::string layer, phase, variant;  // "total", "total", "" for the whole step
  double median_seconds = 0;
  double predicted_seconds = 0;  // the same plan alone, warm; for the total, the sum
};

struct StepResult {
  std::vector<StepRow> rows;  // in the order of the step, then the total
  Summary total;
  // CPU time of this process in further steps / (their elapsed time · processors), waiting in a
  // loop included; 1 is all processors. Unknown (NaN) over several ranks, which share the
  // processors.
  double processor_load = std::numeric_limits<double>::quiet_NaN();
};

// Replaces each operation's rung by that of its alternatives which is fastest within the step: with
// its operands where the operations before it leave them, and a team that has just worked. Alone,
// on warm operands, a rung on one thread may win that waits for memory here. Collective.
void choose_within_step(TrainableNetwork& network);

// Interleaves the steps of the configurations. The learning rate is 0: every repetition does the
// same work. Throws Interrupted, and std::runtime_error if a step throws.
std::vector<StepResult> measure_steps(std::vector<Configuration>& configurations, Run& run,
                                      const MeasureOptions& options);
// The same, of whole steps alone.
std::vector<Summary> measure_whole_steps(std::vector<Configuration>& configurations, Run& run,
                                         const MeasureOptions& options);

}  // namespace stepladder

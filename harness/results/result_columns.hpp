// The columns of every CSV file of a run folder. To add a column, add one entry in the .cpp file.
#pragma once

#include <limits>
#include <span>
#include <string>

#include "harness/results/attribution.hpp"
#include "harness/results/bench_row.hpp"
#include "harness/results/columns.hpp"

namespace stepladder {

// One repetition of a row of summary.csv.
struct SampleRow {
  const BenchRow& row;
  const Sample& sample;
};

// One layer and phase of a training step, or its total.
struct StepCsvRow {
  std::string network, use, mode;
  int threads = 1, ranks = 1;
  std::string device, layer, phase, variant;
  static constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  double median_seconds = 0, predicted_seconds = 0;
  double ci_low = unknown, ci_high = unknown, processor_load = unknown;  // of the total alone
};

// A layer of a network that infers, or its total: whole requests.
struct InferenceRow {
  std::string network, use, split;
  std::int64_t batch = 1;
  int threads = 1, ranks = 1;
  std::string weights, layer, variant, status, reason, verified;
  static constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  double error_ratio = unknown;
  std::optional<std::int64_t> requests = {};
  double median_seconds = unknown, ci_low = unknown, ci_high = unknown;
  double p50 = unknown, p90 = unknown, p99 = unknown, max = unknown;
  double samples_per_second = unknown, share = unknown, accuracy = unknown;
  std::string marked{};
};

// A training: what its rows in train.csv and staleness.csv have in common.
struct TrainingId {
  std::string network, use, mode;
  int threads = 1, ranks = 1, hosts = 1;
  std::string device;
  std::uint64_t seed = 1;
  std::int64_t batch = 1;
  std::string optimizer;
};

// The state of a training after a number of steps.
struct TrainRow : TrainingId {
  std::string all_reduce{};
  std::int64_t step = 0, epoch = 0, samples = 0;
  double seconds = 0, loss = 0;
  std::optional<double> accuracy{};  // none where it was not taken
  double learning_rate = 0;
  // None between evaluations: all ranks together know them.
  std::optional<double> bytes_per_step = {};
  std::optional<double> compute = {}, exposed = {}, hidden = {}, waiting = {};  // shares of seconds
  std::optional<double> staleness_mean = {};
  std::optional<std::int64_t> staleness_max = {};
};

// The number of updates with a staleness.
struct StalenessRow : TrainingId {
  std::int64_t staleness = 0, updates = 0;
};

// A mode of training as `stepladder plan` predicts it, and measures it with --measure. Seconds and
// bytes are of one update of the weights, means over the ranks.
struct PlanRow {
  std::string network, use, mode, all_reduce;
  int threads = 1, ranks = 1, hosts = 1;
  std::int64_t batch = 1;
  std::string why_not;  // there is no prediction; else empty
  std::optional<double> compute_seconds = {}, exposed_seconds = {}, waiting_seconds = {};
  std::optional<double> predicted_seconds = {}, bytes_per_step = {}, measured_seconds = {};
};

// A technique of a lattice; or a pair of them, `together`; or all
// (harness/results/attribution.hpp).
struct AttributionRow {
  std::string primitive, direction, problem, shape;
  int threads = 1;
  std::string technique{}, partner{};
  std::optional<Factor> alone{}, last{}, average{}, least{}, most{}, together{};
  std::string least_after{}, most_after{};
};

const ColumnsOf<BenchRow>& summary_columns();
const ColumnsOf<SampleRow>& samples_columns();
const ColumnsOf<StepCsvRow>& step_columns();
const ColumnsOf<InferenceRow>& inference_columns();
const ColumnsOf<TrainRow>& train_columns();
const ColumnsOf<StalenessRow>& staleness_columns();
const ColumnsOf<PlanRow>& plan_columns();
const ColumnsOf<AttributionRow>& attribution_columns();
std::span<const Columns* const> all_columns();

// The text of columns.json: {"schema_version", "tables": {name: [{name, type, unit, meaning}]}}.
std::string columns_as_json();

}  // namespace stepladder

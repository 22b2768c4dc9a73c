#include "harness/results/result_columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "harness/io/json_text.hpp"

namespace stepladder {
namespace {

using Json = nlohmann::ordered_json;

std::string text_if(bool present, const std::string& text) { return present ? text : ""; }
const char* yes_or_no(bool value) { return value ? "yes" : "no"; }

double bytes_of(const ProblemInfo& problem) { return problem.bytes_read + problem.bytes_written; }

// Functions that get a value of a row; `value` is a member, or a function. Of rows without a
// problem there is none.
template <class Value>
auto of_problem(Value value) {
  return [value](const BenchRow& row) {
    using Result = std::decay_t<std::invoke_result_t<Value, const ProblemInfo&>>;
    return row.problem == nullptr ? std::optional<Result>()
                                  : std::optional<Result>(std::invoke(value, *row.problem));
  };
}

// Times of rows that were not measured are empty.
std::optional<double> time_if(bool present, double seconds) {
  return present && seconds > 0 ? std::optional(seconds) : std::nullopt;
}
auto time_of(double Summary::*member) {
  return [member](const BenchRow& row) { return time_if(row.is_ok(), row.summary.*member); };
}

// `amount` of the problem, in units of 1e9 per second of the median.
template <class Amount>
auto rate(Amount amount) {
  return [amount](const BenchRow& row) -> std::optional<double> {
    if (row.problem == nullptr || !row.is_ok()) return {};
    return std::invoke(amount, *row.problem) / row.summary.median / 1e9;
  };
}

// Median over the repetitions that have the value.
template <class Value>
auto median_of(Value value) {
  return [value](const BenchRow& row) {
    std::vector<double> values;
    if (row.is_ok())
      for (const Sample& sample : row.measured.samples)
        if (const std::optional<double> one = std::invoke(value, sample)) values.push_back(*one);
    return values.empty() ? std::nullopt : std::optional(summarize(std::move(values)).median);
  };
}

// Of most repetitions that were not disturbed.
const char* usual_cores(const Measured& measured) {
  std::array<int, 4> counts{};
  for (const Sample& sample : measured.samples)
    if (!sample.disturbed) ++counts[static_cast<std::size_t>(sample.cores)];
  return name_of(
      static_cast<Cores>(std::max_element(counts.begin(), counts.end()) - counts.begin()));
}

auto counter(double CounterValues::*member) {
  return [member](const Sample& sample) {
    return sample.counters ? std::optional(*sample.counters.*member) : std::nullopt;
  };
}

template <class Value>
auto of_sample(Value value) {
  return [value](const SampleRow& row) { return std::invoke(value, row.sample); };
}

auto part_of(std::optional<Factor> AttributionRow::*factor, double Factor::*part) {
  return [factor, part](const AttributionRow& row) {
    return row.*factor ? std::optional(*(row.*factor).*part) : std::nullopt;
  };
}

}  // namespace

const ColumnsOf<BenchRow>& summary_columns() {
  using Row = BenchRow;
  using Problem = ProblemInfo;
  static const ColumnsOf<Row> columns(
      "summary",
      {{"primitive", "", "operation", [](const Row& r) { return r.variant->primitive; }},
       {"direction", "", "direction of the problem, such as forward",
        of_problem(&Problem::direction)},
       {"variant", "", "name of the implementation", [](const Row& r) { return r.variant->name; }},
       {"technique", "", "serial, simd, openmp, pthread, mpi, cuda, opencl or vendor",
        [](const Row& r) { return name_of(r.variant->info->technique); }},
       {"builds_on", "", "name of the rung below; empty: a first rung or a library",
        [](const Row& r) { return r.variant->info->builds_on; }},
       {"idea", "", "what it adds to the rung below, such as packing; empty: as builds_on",
        [](const Row& r) { return name_of(r.variant->info->idea); }},
       {"suite", "", "suite of the problem", of_problem(&Problem::suite)},
       {"problem", "", "name of the problem; empty: the variant can run none here",
        of_problem(&Problem::name)},
       {"shape", "", "dimensions of the problem", of_problem(&Problem::shape)},
       {"precision", "", "precision of the arithmetic; low_precision: format of the operands",
        &Row::precision},
       {"arithmetic", "",
        "fewer: multiplications than the problem defines, as in Winograd; any: the library chooses",
        [](const Row& r) {
          const VariantInfo& info = *r.variant->info;
          return text_if(info.normwise, info.chooses_algorithm ? "any" : "fewer");
        }},
       {"message_share", "",
        "bytes that an all-reduce sends, relative to a ring of fp32; empty: as many",
        [](const Row& r) -> std::optional<double> {
          const VariantInfo& info = *r.variant->info;
          if (info.encoded_share == 1.0 || r.problem == nullptr) return std::nullopt;
          return info.encoded_share * (info.gathers ? r.problem->ranks / 2.0 : 1);
        }},
       {"layout", "", "layout of the operands", of_problem(&Problem::layout)},
       {"prepacked", "", "yes: the weights are packed ahead of the timed runs",
        [](const Row& r) { return yes_or_no(r.variant->info->prepacked); }},
       {"cache", "", "warm, or cold: operands rotated beyond the last-level cache",
        [](const Row& r) { return text_if(r.problem != nullptr, r.cold ? "cold" : "warm"); }},
       {"threads", "", "number of threads",
        [](const Row& r) { return r.problem == nullptr ? std::optional<int>() : r.threads; }},
       {"ranks", "", "number of MPI ranks, or of GPUs", of_problem(&Problem::ranks)},
       {"hosts", "", "number of hosts on which the ranks run", of_problem(&Problem::hosts)},
       {"device", "", "cpu, or the name of the GPU",
        [](const Row& r) { return device_of(*r.variant->info); }},
       {"status", "", "ok, failed, unavailable or skipped", &Row::status},
       {"reason", "", "why there is no time; in ok rows, a remark", &Row::reason},
       {"verified", "", "yes: the results agree with the reference",
        [](const Row& r) { return yes_or_no(r.verified); }},
       {"error_ratio", "", "largest error divided by its bound", &Row::error_ratio},
       {"relative_error", "",
        "norm of the error / norm of the result, of one call of a variant that compresses messages",
        &Row::relative_error},
       {"repetitions", "", "number of repetitions in the median",
        [](const Row& r) { return r.is_ok() ? std::optional(r.summary.count) : std::nullopt; }},
       {"marked", "", "disturbed: most repetitions were, and the times may be too long",
        [](const Row& r) { return text_if(r.is_ok() && r.measured.is_disturbed(), "disturbed"); }},
       {"cores", "",
        "of several threads, in most repetitions: near, far (in different L3 caches) or shared",
        [](const Row& r) { return text_if(r.is_ok(), usual_cores(r.measured)); }},
       {"median_s", "s", "median time of one call", time_of(&Summary::median)},
       {"ci_low_s", "s", "lower end of the 95 % interval of the median, over the visits",
        time_of(&Summary::ci_low)},
       {"ci_high_s", "s", "upper end of the 95 % interval of the median, over the visits",
        time_of(&Summary::ci_high)},
       {"min_s", "s", "shortest time of one call", time_of(&Summary::min)},
       {"prepare_s", "s", "time of packing the weights", &Row::prepare_seconds},
       {"predicted_s", "s", "time by the cost model on the measured links, of a variant over MPI",
        [](const Row& r) { return time_if(r.is_ok(), r.predicted_seconds); }},
       {"flops", "FLOP", "FLOPs of one call, as the problem defines them",
        of_problem(&Problem::flops)},
       {"bytes", "B", "bytes read and written by one call, each operand once",
        of_problem(bytes_of)},
       {"gflops_per_s", "GFLOP/s", "flops / median_s", rate(&Problem::flops)},
       {"gbytes_per_s", "GB/s", "bytes / median_s", rate(bytes_of)},
       {"busbw_gbytes_per_s", "GB/s", "bus bandwidth of an all-reduce, as nccl-tests defines it",
        [](const Row& r) {
          const bool has_bus = r.problem != nullptr && r.problem->bus_bytes > 0;
          return has_bus ? rate(&Problem::bus_bytes)(r) : std::nullopt;
        }},
       {"roof", "", "ceiling that bounds the problem",
        [](const Row& r) { return text_if(r.is_ok(), r.roof.name); }},
       {"percent_of_roof", "%", "time at the roof / median_s",
        [](const Row& r) -> std::optional<double> {
          if (!r.is_ok() || r.roof.seconds <= 0) return {};
          return 100 * r.roof.seconds / r.summary.median;
        }},
       {"speedup_vs_serial", "", "time of the first serial rung / time of this row",
        &Row::speedup_vs_serial},
       {"speedup_vs_compiler", "",
        "time of the fastest serial rung that the compiler vectorized / time of this row",
        &Row::speedup_vs_compiler},
       {"speedup_vs_vendor", "", "time of the fastest comparable library / time of this row",
        &Row::speedup_vs_vendor},
       {"speedup_vs_vendor_equal", "",
        "the same among libraries with the arithmetic of this row: fewer or all multiplications",
        &Row::speedup_vs_vendor_equal},
       {"break_even_gbit_per_s", "Gbit/s",
        "rate of the links below which the cost model predicts that compression pays; 0: never",
        [](const Row& r) { return r.break_even_rate / 1e9; }},
       {"cycles", "", "CPU cycles of one call in user mode",
        median_of(counter(&CounterValues::cycles))},
       {"instructions", "", "instructions of one call in user mode",
        median_of(counter(&CounterValues::instructions))},
       {"cpi", "", "cycles / instructions",
        [](const Row& r) -> std::optional<double> {
          const auto cycles = median_of(counter(&CounterValues::cycles))(r);
          const auto instructions = median_of(counter(&CounterValues::instructions))(r);
          if (!cycles || !instructions) return {};
          return *cycles / *instructions;
        }},
       {"energy_j", "J", "energy of the CPU packages during one call (RAPL)",
        median_of(&Sample::energy_joules)},
       {"repeat_command", "", "command that measures this row alone", &Row::repeat_command}});
  return columns;
}

const ColumnsOf<SampleRow>& samples_columns() {
  using Row = SampleRow;
  static const ColumnsOf<Row> columns(
      "samples",
      {{"primitive", "", "as in summary.csv",
        [](const Row& r) { return r.row.problem->primitive; }},
       {"direction", "", "as in summary.csv",
        [](const Row& r) { return r.row.problem->direction; }},
       {"variant", "", "as in summary.csv", [](const Row& r) { return r.row.variant->name; }},
       {"problem", "", "as in summary.csv", [](const Row& r) { return r.row.problem->name; }},
       {"threads", "", "as in summary.csv", [](const Row& r) { return r.row.threads; }},
       {"ranks", "", "as in summary.csv", [](const Row& r) { return r.row.problem->ranks; }},
       {"repetition", "", "number of the repetition, equal within a round",
        of_sample(&Sample::round)},
       {"visit", "", "number of the visit to the problem; each has new operands and plans",
        of_sample(&Sample::visit)},
       {"seconds", "s", "time of one call", of_sample(&Sample::seconds)},
       {"iterations", "", "number of calls in the repetition", of_sample(&Sample::iterations)},
       {"marked", "", "disturbed: something slowed the machine",
        [](const Row& r) { return r.sample.disturbed ? "disturbed" : ""; }},
       {"calibration_ratio", "", "time of the calibration loop / its shortest time",
        of_sample(&Sample::calibration_ratio)},
       {"stolen_s", "s", "CPU time that the hypervisor gave to others",
        of_sample(&Sample::stolen_seconds)},
       {"queued_s", "s", "time in which threads that had lost their core waited for it",
        of_sample(&Sample::queued_seconds)},
       {"cores", "",
        "of several threads: near, far (in different L3 caches) or shared (one physical core)",
        [](const Row& r) { return name_of(r.sample.cores); }},
       {"tsc_cycles", "", "cycles of the time-stamp counter in one call",
        of_sample(&Sample::reference_cycles)},
       {"cycles", "", "CPU cycles of one call in user mode",
        of_sample(counter(&CounterValues::cycles))},
       {"instructions", "", "instructions of one call in user mode",
        of_sample(counter(&CounterValues::instructions))},
       {"cache_misses", "", "cache misses of one call in user mode",
        of_sample(counter(&CounterValues::cache_misses))}});
  return columns;
}

const ColumnsOf<StepCsvRow>& step_columns() {
  using Row = StepCsvRow;
  static const ColumnsOf<Row> columns(
      "step",
      {{"network", "", "name of the network", &Row::network},
       {"use", "", "rungs of the step, such as best or simd,matmul=serial", &Row::use},
       {"mode", "", "single, inter=N, ablate, attribution, synchronous or graph", &Row::mode},
       {"threads", "", "number of threads inside an operation", &Row::threads},
       {"ranks", "", "number of MPI ranks", &Row::ranks},
       {"device", "", "cpu, or the name of the GPU", &Row::device},
       {"layer", "", "name of the layer; total: the whole step", &Row::layer},
       {"phase", "", "forward, backward, update, all_reduce, other or total", &Row::phase},
       {"variant", "", "name of the implementation", &Row::variant},
       {"median_s", "s", "median time inside the step", &Row::median_seconds},
       {"predicted_s", "s", "median time of the same plan alone; in the total row, their sum",
        &Row::predicted_seconds},
       {"ci_low_s", "s", "95 % interval of the median, of one visit, in the total row",
        &Row::ci_low},
       {"ci_high_s", "s", "95 % interval of the median, of one visit, in the total row",
        &Row::ci_high},
       {"processor_load", "%",
        "CPU time of the process / elapsed time of all processors, in the total row of one rank",
        [](const Row& r) { return 100 * r.processor_load; }}});
  return columns;
}

const ColumnsOf<InferenceRow>& inference_columns() {
  using Row = InferenceRow;
  static const ColumnsOf<Row> columns(
      "inference",
      {{"network", "", "name of the network", &Row::network},
       {"use", "", "rungs, such as best or simd,matmul=serial", &Row::use},
       {"split", "", "what threads share: inside (a request), or requests (one thread each)",
        &Row::split},
       {"batch", "", "samples of one request", &Row::batch},
       {"threads", "", "number of threads of a rank", &Row::threads},
       {"ranks", "", "number of MPI ranks, each with requests of its own", &Row::ranks},
       {"weights", "",
        "generated, or the step of the checkpoint and a hash of its weights, step 300 (5a0c41d2)",
        &Row::weights},
       {"layer", "", "name of the layer; total: whole requests", &Row::layer},
       {"variant", "", "name of the implementation", &Row::variant},
       {"status", "", "ok, failed or unavailable", &Row::status},
       {"reason", "", "why there is no time", &Row::reason},
       {"verified", "", "yes or no, in the total row: outputs within the bound", &Row::verified},
       {"error_ratio", "", "largest error of an output / its bound, in the total row",
        &Row::error_ratio},
       {"requests", "", "requests that count, of all ranks, in the total row", &Row::requests},
       {"median_s", "s", "median latency; of a layer, its median time in a request",
        &Row::median_seconds},
       {"ci_low_s", "s", "95 % interval of the median, of one visit, in the total row",
        &Row::ci_low},
       {"ci_high_s", "s", "95 % interval of the median, of one visit, in the total row",
        &Row::ci_high},
       {"p50_s", "s", "latency that half of the requests do not exceed", &Row::p50},
       {"p90_s", "s", "latency that 90 % of the requests do not exceed", &Row::p90},
       {"p99_s", "s", "latency that 99 % of the requests do not exceed", &Row::p99},
       {"max_s", "s", "longest latency", &Row::max},
       {"samples_per_s", "1/s", "samples of all requests / elapsed time, summed over ranks",
        &Row::samples_per_second},
       {"share", "%", "share of the layer in the sum over the layers",
        [](const Row& r) { return 100 * r.share; }},
       {"accuracy", "", "accuracy on the held-out images, 0 to 1, where it was taken",
        &Row::accuracy},
       {"marked", "", "disturbed: other work slowed most repetitions", &Row::marked}});
  return columns;
}

const ColumnsOf<TrainRow>& train_columns() {
  using Row = TrainRow;
  static const ColumnsOf<Row> columns(
      "train",
      {{"network", "", "name of the network", &Row::network},
       {"use", "", "rungs, such as best or simd,matmul=serial", &Row::use},
       {"mode", "", "mode of the training with its options, such as ssp,bound=2", &Row::mode},
       {"all_reduce", "", "rungs that reduce the gradients; empty: none does", &Row::all_reduce},
       {"threads", "", "number of threads inside an operation", &Row::threads},
       {"ranks", "", "number of MPI ranks, or of replica threads of one process", &Row::ranks},
       {"hosts", "", "number of hosts on which the ranks run", &Row::hosts},
       {"device", "", "cpu, or the name of the GPU", &Row::device},
       {"seed", "", "seed of weights, batches and data", &Row::seed},
       {"batch", "", "samples of one update of the weights", &Row::batch},
       {"optimizer", "", "optimizer, such as adam or momentum,learning_rate=0.02", &Row::optimizer},
       {"step", "", "number of updates of the weights so far", &Row::step},
       {"epoch", "", "number of the epoch, from 1", &Row::epoch},
       {"samples", "", "samples so far, of all ranks together", &Row::samples},
       {"seconds", "s", "training time so far", &Row::seconds},
       {"samples_per_s", "1/s", "samples so far / seconds",
        [](const Row& r) { return static_cast<double>(r.samples) / r.seconds; }},
       {"loss", "", "loss of the last batch", &Row::loss},
       {"accuracy", "", "accuracy on the held-out images, 0 to 1", &Row::accuracy},
       {"learning_rate", "", "learning rate of the last step", &Row::learning_rate},
       {"bytes_per_step", "B",
        "bytes that a rank sent per update, mean over the ranks; of an all-reduce, those of a ring",
        &Row::bytes_per_step},
       {"compute_share", "", "share of the training time in which a rank computed, mean over ranks",
        &Row::compute},
       {"exposed_share", "", "share in which it communicated and computed nothing", &Row::exposed},
       {"hidden_share", "", "share in which it communicated and computed, part of compute_share",
        &Row::hidden},
       {"waiting_share", "", "share in which it waited for ranks that were behind", &Row::waiting},
       {"staleness_mean", "",
        "updates between reading the weights and applying the gradient computed with them, mean",
        &Row::staleness_mean},
       {"staleness_max", "", "the largest of these", &Row::staleness_max}});
  return columns;
}

const ColumnsOf<StalenessRow>& staleness_columns() {
  using Row = StalenessRow;
  static const ColumnsOf<Row> columns(
      "staleness",
      {{"network", "", "as in train.csv", &Row::network},
       {"use", "", "as in train.csv", &Row::use},
       {"mode", "", "as in train.csv", &Row::mode},
       {"threads", "", "as in train.csv", &Row::threads},
       {"ranks", "", "as in train.csv", &Row::ranks},
       {"hosts", "", "as in train.csv", &Row::hosts},
       {"seed", "", "as in train.csv", &Row::seed},
       {"batch", "", "as in train.csv", &Row::batch},
       {"optimizer", "", "as in train.csv", &Row::optimizer},
       {"staleness", "", "updates between reading the weights and applying the gradient",
        &Row::staleness},
       {"updates", "", "number of gradients with this staleness", &Row::updates}});
  return columns;
}

const ColumnsOf<PlanRow>& plan_columns() {
  using Row = PlanRow;
  static const ColumnsOf<Row> columns(
      "plan",
      {{"network", "", "name of the network", &Row::network},
       {"use", "", "rungs, such as best or simd,matmul=serial", &Row::use},
       {"mode", "", "mode of training with its options, such as ssp,bound=2", &Row::mode},
       {"all_reduce", "", "rung that reduces the gradients; empty: none does", &Row::all_reduce},
       {"threads", "", "number of threads inside an operation", &Row::threads},
       {"ranks", "", "number of replicas", &Row::ranks},
       {"hosts", "", "number of hosts on which they run", &Row::hosts},
       {"batch", "", "samples of one update of the weights", &Row::batch},
       {"compute_s", "s", "predicted time that a rank computes per update, mean over the ranks",
        &Row::compute_seconds},
       {"exposed_s", "s", "predicted time that it communicates and computes nothing",
        &Row::exposed_seconds},
       {"waiting_s", "s", "predicted time that it waits for other ranks", &Row::waiting_seconds},
       {"predicted_s", "s", "predicted time of one update of the weights: the sum of these",
        &Row::predicted_seconds},
       {"samples_per_s", "1/s", "batch / predicted_s",
        [](const Row& r) {
          return r.predicted_seconds
                     ? std::optional(static_cast<double>(r.batch) / *r.predicted_seconds)
                     : std::nullopt;
        }},
       {"bytes_per_step", "B", "predicted bytes that a rank sends per update, mean over the ranks",
        &Row::bytes_per_step},
       {"measured_s", "s", "measured time of one update, median of short trainings",
        &Row::measured_seconds},
       {"error_percent", "%", "predicted_s / measured_s - 1",
        [](const Row& r) {
          return r.predicted_seconds && r.measured_seconds
                     ? std::optional(100 * (*r.predicted_seconds / *r.measured_seconds - 1))
                     : std::nullopt;
        }},
       {"why_not", "", "why there is no prediction", &Row::why_not}});
  return columns;
}

const ColumnsOf<AttributionRow>& attribution_columns() {
  using Row = AttributionRow;
  static const ColumnsOf<Row> columns(
      "attribution",
      {{"primitive", "", "operation; step: a training step", &Row::primitive},
       {"direction", "", "direction of the problem, such as forward; of a step empty",
        &Row::direction},
       {"problem", "", "name of the problem, or of the network", &Row::problem},
       {"shape", "", "dimensions of the problem, or batch of the step", &Row::shape},
       {"threads", "", "number of threads of the technique threads", &Row::threads},
       {"technique", "", "a switch of the lattice, such as packing; all: every one",
        &Row::technique},
       {"partner", "", "of a pair: the other switch", &Row::partner},
       {"alone", "", "times as fast with this technique alone",
        part_of(&Row::alone, &Factor::value)},
       {"alone_low", "", "lower end of its 95 % interval", part_of(&Row::alone, &Factor::low)},
       {"alone_high", "", "upper end of its 95 % interval", part_of(&Row::alone, &Factor::high)},
       {"last", "", "times as fast with it, all others in place",
        part_of(&Row::last, &Factor::value)},
       {"last_low", "", "lower end of its 95 % interval", part_of(&Row::last, &Factor::low)},
       {"last_high", "", "upper end of its 95 % interval", part_of(&Row::last, &Factor::high)},
       {"average", "", "times as fast, mean over all orders; of technique all: all over none",
        part_of(&Row::average, &Factor::value)},
       {"average_low", "", "lower end of its 95 % interval", part_of(&Row::average, &Factor::low)},
       {"average_high", "", "upper end of its 95 % interval",
        part_of(&Row::average, &Factor::high)},
       {"least", "", "least gain, over the sets of techniques before it",
        part_of(&Row::least, &Factor::value)},
       {"least_low", "", "lower end of its 95 % interval", part_of(&Row::least, &Factor::low)},
       {"least_high", "", "upper end of its 95 % interval", part_of(&Row::least, &Factor::high)},
       {"least_after", "", "the techniques that were there before", &Row::least_after},
       {"most", "",
        "largest gain, over the sets of techniques before it; of technique all: of the fastest set",
        part_of(&Row::most, &Factor::value)},
       {"most_low", "", "lower end of its 95 % interval", part_of(&Row::most, &Factor::low)},
       {"most_high", "", "upper end of its 95 % interval", part_of(&Row::most, &Factor::high)},
       {"most_after", "",
        "the techniques that were there before; of technique all: the fastest set",
        &Row::most_after},
       {"together", "",
        "of a pair: gain of both / product of their gains, mean over the sets of others",
        part_of(&Row::together, &Factor::value)},
       {"together_low", "", "lower end of its 95 % interval",
        part_of(&Row::together, &Factor::low)},
       {"together_high", "", "upper end of its 95 % interval",
        part_of(&Row::together, &Factor::high)}});
  return columns;
}

std::span<const Columns* const> all_columns() {
  static const Columns* const all[] = {
      &summary_columns(), &samples_columns(),   &step_columns(), &inference_columns(),
      &train_columns(),   &staleness_columns(), &plan_columns(), &attribution_columns()};
  return all;
}

std::string columns_as_json() {
  std::string text = "{\n \"schema_version\": 1,\n \"tables\": {";
  for (const Columns* columns : all_columns()) {
    text += fmt::format("{}\n  \"{}\": [", columns == all_columns().front() ? "" : ",",
                        columns->name());
    for (const Column& column : columns->all()) {
      Json json = {{"name", column.name}, {"type", name_of(column.type)}};
      if (!column.unit.empty()) json["unit"] = column.unit;
      json["meaning"] = column.meaning;
      text +=
          fmt::format("{}\n   {}", &column == &columns->all().front() ? "" : ",", json_text(json));
    }
    text += "\n  ]";
  }
  return text + "\n }\n}\n";
}

}  // namespace stepladder

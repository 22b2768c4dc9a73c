// stepladder infer: latency and throughput of a network that infers, by batch, threads and rungs.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>

#include "bench/commands.hpp"
#include "bench/crash_report.hpp"
#include "bench/networks.hpp"
#include "bench/option_checks.hpp"
#include "bench/row_table.hpp"
#include "bench/selection.hpp"
#include "harness/data/network_data.hpp"
#include "harness/execution/inference.hpp"
#include "harness/io/hash.hpp"
#include "harness/io/json_text.hpp"
#include "harness/problem/random.hpp"
#include "harness/ranks/communicator.hpp"
#include "harness/ranks/mpi_session.hpp"
#include "harness/results/result_columns.hpp"
#include "harness/training/checkpoint.hpp"
#include "harness/training/trainer.hpp"

namespace stepladder {
namespace {

struct InferOptions {
  NetworkChoice network;
  std::vector<std::string> use = {"best"};
  std::vector<int> batch = {1, 8, 64}, threads = default_threads();
  std::string split = "both", weights, data, exported;
  InferenceOptions measure;
  RunChoice run;
};

// "best,vendor,convolution=direct": best, and vendor with an exception.
std::vector<std::string> uses_of(const std::vector<std::string>& texts) {
  std::vector<std::string> uses;
  for (const std::string& text : texts) {
    std::istringstream parts(text);
    bool is_first = true;
    for (std::string part; std::getline(parts, part, ','); is_first = false)
      if (is_first || part.find('=') == std::string::npos)
        uses.push_back(part);
      else
        uses.back() += "," + part;
  }
  return without_repeats(uses);
}

struct InferInputs {
  network::NetworkDescription description;  // with the largest batch
  std::vector<UseSpec> uses;
  std::optional<Checkpoint> checkpoint;   // rank 0
  std::optional<data::DatasetPair> data;  // with weights of a training
};

InferInputs inputs_of(const InferOptions& options) {
  InferInputs inputs{options.network.load(), {}, {}, {}};
  inputs.description.batch = *std::max_element(options.batch.begin(), options.batch.end());
  for (const std::string& text : uses_of(options.use)) {
    inputs.uses.push_back(UseSpec(text).of_constant_weights());
    if (place_of(inputs.description, inputs.uses.back()) != Place::cpu)
      throw std::runtime_error(
          fmt::format("infer runs on the CPU; --use {} selects the device", text));
  }
  if (options.weights.empty()) return inputs;
  if (mpi_session().rank() == 0)
    inputs.checkpoint = read_checkpoint(options.weights, network::identity_of(inputs.description));
  inputs.data = data::data_for(inputs.description, options.data, options.run.seed);
  require_batch(inputs.data->test, inputs.description);
  return inputs;
}

// Weights of a training, and what it reported; without --weights there are none.
struct Weights {
  std::string name = "generated";  // as in inference.csv
  std::vector<float> parameters{};
  double accuracy = 0;
  std::string data_hash{};
};

// Rank 0 has read them; collective.
Weights weights_of(const std::optional<Checkpoint>& checkpoint) {
  const MpiSession& mpi = mpi_session();
  const std::string text = mpi.broadcast(checkpoint ? json_text(checkpoint->progress) : "");
  if (text.empty()) return {};
  const nlohmann::json progress = parse_json(text);
  Weights weights{.parameters = {},
                  .accuracy = progress.value("accuracy", 0.0),
                  .data_hash = progress.value("data", "")};
  if (checkpoint)
    for (const auto& [name, values] : checkpoint->arrays)
      if (name == "parameters") weights.parameters = values;
  weights.parameters.resize(static_cast<std::size_t>(
      mpi.broadcast(static_cast<std::int64_t>(weights.parameters.size()))));
  Communicator("the weights").broadcast(0, weights.parameters);
  const std::uint64_t hash = fnv1a(std::as_bytes(std::span(weights.parameters)));
  weights.name = fmt::format("step {} ({:08x})", progress.value("step", std::int64_t{0}),
                             static_cast<std::uint32_t>(hash));
  return weights;
}

// One row of the table, and its service while it has one.
struct ServedUse {
  UseSpec use;
  Split split;
  int threads;
  std::string status = "ok", reason{};
  std::optional<Service> service{};
  std::optional<Latency> latency{};
  double error = InferenceRow::unknown, accuracy = InferenceRow::unknown;

  std::string label() const {
    return threads == 1             ? "1 thread"
           : split == Split::inside ? fmt::format("{} threads inside", threads)
                                    : fmt::format("{} requests at once", threads);
  }
  void fail(const char* new_status, const std::string& why) {
    status = new_status;
    reason = why;
    service.reset();
    latency.reset();
  }
};

// Rungs of one thread work inside a request on the first number of threads alone.
std::vector<ServedUse> configurations_of(const InferOptions& options,
                                         const std::vector<UseSpec>& uses) {
  std::vector<ServedUse> all;
  for (const UseSpec& use : uses) {
    bool repeats = false;
    for (const int threads : options.threads) {
      if ((options.split != "requests" || threads == 1) && !repeats) {
        all.push_back({use, Split::inside, threads});
        repeats = !use.is_threaded();
      }
      if (options.split != "inside" && threads > 1) all.push_back({use, Split::requests, threads});
    }
  }
  return all;
}

class Inference {
 public:
  Inference(const InferOptions& options, InferInputs inputs, Weights weights, Run& run)
      : options_(options), inputs_(std::move(inputs)), weights_(std::move(weights)), run_(run) {
    Random random(options_.run.seed, "images");
    images_.resize(
        static_cast<std::size_t>(inputs_.description.batch * inputs_.description.input.features()));
    for (float& pixel : images_) pixel = random.uniform(-1.0F, 1.0F);
    if (run_.writes() && run_.folder().has(inference_columns())) {
      const CsvFile file = run_.folder().read(inference_columns());
      for (const CsvRow& row : file.rows())
        if (row.text("layer") == "total")
          measured_.insert(
              {{row.text("network"), row.text("use"), row.text("split"), row.text("batch"),
                row.text("threads"), row.text("ranks"), row.text("weights")},
               row.text("status")});
    }
  }

  void measure(int batch) {
    std::vector<ServedUse> all = configurations_of(options_, inputs_.uses);
    std::erase_if(all, [&](const ServedUse& c) {
      const auto known = measured_.find(key(c, batch));
      const bool is_known = known != measured_.end();
      has_failed_ = has_failed_ || (is_known && known->second == "failed");
      return mpi_session().broadcast(std::int64_t{is_known}) != 0;
    });
    network::NetworkDescription description = inputs_.description;
    description.batch = batch;
    PlanStore plans(options_.run.seed);
    TrainableNetwork* owner = nullptr;  // of the weights
    for (ServedUse& c : all) prepare(c, description, plans, owner);

    std::vector<Service> services;
    for (ServedUse& c : all)
      if (c.service) services.push_back(std::move(*c.service));
    const std::vector<Latency> latencies =
        services.empty() ? std::vector<Latency>()
                         : measure_inference(services, reference_, run_, options_.measure);
    std::size_t next = 0;
    for (ServedUse& c : all) {
      if (!c.service) continue;
      const double bound = output_bound(*services[next].networks.front());
      c.latency = latencies[next++];
      require_right(c, c.latency->error, bound);
    }
    has_verified_ = has_verified_ || std::any_of(all.begin(), all.end(), [](const auto& c) {
                      return c.latency.has_value();
                    });
    if (!run_.writes() || all.empty()) return;
    Table table = run_.folder().table(inference_columns());
    for (const ServedUse& c : all) table.append(rows_of(c, batch));
    print(all, batch);
  }

  // Rank 0, after the measurements.
  void export_to(const std::string& file) const {
    if (reference_.logits.empty())
      throw std::runtime_error(
          fmt::format("--export {}: there is no network to export: {}", file,
                      measured_.empty() ? "no rung can run" : "its requests are measured already"));
    Checkpoint all{.identity = network::identity_of(inputs_.description),
                   .progress = {{"weights", weights_.name}},
                   .arrays = named_parameters_};
    const auto floats = [](const std::vector<double>& values) {
      return std::vector<float>(values.begin(), values.end());
    };
    all.arrays.emplace_back("images", images_);
    all.arrays.emplace_back("logits", floats(reference_.logits));
    all.arrays.emplace_back("probabilities", floats(reference_.probabilities));
    write_checkpoint(file, all);
  }

  bool has_failed() const { return has_failed_; }
  bool has_verified() const { return has_verified_ || !measured_.empty(); }

 private:
  std::vector<std::string> key(const ServedUse& c, int batch) const {
    return {inputs_.description.name,
            c.use.text(),
            name_of(c.split),
            std::to_string(batch),
            std::to_string(c.threads),
            std::to_string(mpi_session().ranks()),
            weights_.name};
  }

  // Makes the service and verifies it. The first one owns the weights.
  void prepare(ServedUse& c, const network::NetworkDescription& description, PlanStore& plans,
               TrainableNetwork*& owner) {
    try {
      c.service = make_service(description, c.use, c.split, c.threads, options_.run.seed,
                               weights_.parameters, owner, plans);
    } catch (const NoVariant& error) {
      return c.fail("unavailable", error.what());
    } catch (const std::runtime_error& error) {
      has_failed_ = true;
      return c.fail("failed", error.what());
    }
    TrainableNetwork& network = *c.service->networks.front();
    if (owner == nullptr) owner = &network;
    if (reference_.logits.empty()) set_reference(network);
    const std::size_t count = network.images().size();
    const double error = serve_once(*c.service, std::span(images_).first(count), reference_);
    if (inputs_.data && error <= 1 && description.batch == inputs_.description.batch &&
        with_accuracy_.insert(c.use.text()).second) {
      c.accuracy = accuracy_over_ranks(network, inputs_.data->test);
      std::ranges::copy(std::span(images_).first(count), network.images().begin());
    }
    const double bound = output_bound(network);
    // A network that owns the weights stays until the end of the batch.
    if (!(error <= 1) && &network == owner) kept_ = std::move(c.service);
    require_right(c, error, bound);
  }

  void set_reference(TrainableNetwork& network) {
    reference_ = reference_outputs(network, images_);
    if (options_.exported.empty()) return;
    for (const ParameterRange& range : network.parameter_list()) {
      const auto values = network.parameters().subspan(range.offset, range.count);
      named_parameters_.emplace_back(range.name, std::vector<float>(values.begin(), values.end()));
    }
  }

  void require_right(ServedUse& c, double error, double bound) {
    c.error = std::isnan(c.error) ? error : std::max(c.error, error);
    if (error <= 1) return;
    has_failed_ = true;
    c.fail("failed",
           fmt::format("the outputs differ from the fp64 reference by {:.3g} times the bound, {:g}",
                       error, bound));
  }

  std::vector<std::vector<std::string>> rows_of(const ServedUse& c, int batch) const {
    InferenceRow row{.network = inputs_.description.name,
                     .use = c.use.text(),
                     .split = name_of(c.split),
                     .batch = batch,
                     .threads = c.threads,
                     .ranks = mpi_session().ranks(),
                     .weights = weights_.name,
                     .layer = "",
                     .variant = "",
                     .status = c.status,
                     .reason = c.reason,
                     .verified = ""};
    std::vector<std::vector<std::string>> rows;
    if (c.latency)
      for (const LayerLatency& one : c.latency->layers) {
        InferenceRow of_layer = row;
        of_layer.layer = one.layer;
        of_layer.variant = one.variant;
        of_layer.median_seconds = one.median_seconds;
        of_layer.share = one.share;
        rows.push_back(inference_columns().line(of_layer));
      }
    row.layer = "total";
    if (!std::isnan(c.error)) row.verified = c.status == "ok" ? "yes" : "no";
    row.error_ratio = c.error;
    row.accuracy = c.accuracy;
    if (const auto& found = c.latency) {
      row.requests = found->requests;
      row.median_seconds = found->median.median;
      row.ci_low = found->median.ci_low;
      row.ci_high = found->median.ci_high;
      row.p50 = found->p50;
      row.p90 = found->p90;
      row.p99 = found->p99;
      row.max = found->max;
      row.samples_per_second = found->samples_per_second;
      row.marked = found->disturbed ? "disturbed" : "";
    }
    rows.push_back(inference_columns().line(row));
    return rows;
  }

  void print(const std::vector<ServedUse>& all, int batch) const {
    fmt::print("\n{}, batch {} (random images, {} weights{})\n", inputs_.description.name, batch,
               weights_.name == "generated" ? weights_.name : "the checkpoint's",
               mpi_session().ranks() > 1 ? fmt::format(", {} ranks", mpi_session().ranks()) : "");
    fmt::print("  {:<24} {:<20} {:>9} {:>9} {:>9} {:>9} {:>10} {:>8}\n", "use", "", "median", "p90",
               "p99", "max", "samples/s", "requests");
    for (const ServedUse& c : all) {
      fmt::print("  {:<24} {:<20} ", c.use.text(), c.label());
      if (const auto& found = c.latency)
        fmt::print("{:>9} {:>9} {:>9} {:>9} {:>10.4g} {:>8}{}\n", time_text(found->median.median),
                   time_text(found->p90), time_text(found->p99), time_text(found->max),
                   found->samples_per_second, found->requests,
                   found->disturbed ? "  disturbed" : "");
      else
        fmt::print("{}: {}\n", c.status == "failed" ? "FAILED" : c.status, c.reason);
    }
    for (const ServedUse& c : all) print_layers(c);
    for (const ServedUse& inside : all)
      for (const ServedUse& requests : all)
        if (inside.split == Split::inside && requests.split == Split::requests &&
            inside.use.text() == requests.use.text() && inside.threads == requests.threads &&
            inside.latency && requests.latency)
          print_better_split(inside, requests);
    print_accuracy(all);
  }

  // Where the time of a request goes, on the first number of threads.
  void print_layers(const ServedUse& c) const {
    if (!c.latency || c.split != Split::inside || c.threads != options_.threads.front()) return;
    std::vector<LayerLatency> layers = c.latency->layers;
    std::stable_sort(layers.begin(), layers.end(),
                     [](const auto& a, const auto& b) { return a.share > b.share; });
    constexpr std::size_t most = 4;
    std::string text;
    for (std::size_t i = 0; i < std::min(most, layers.size()); ++i)
      text += fmt::format("{}{} {:.0f} % ({})", i == 0 ? "" : ", ", layers[i].layer,
                          100 * layers[i].share, layers[i].variant);
    fmt::print("  {}: {}\n", c.use.text(), text);
  }

  static void print_better_split(const ServedUse& inside, const ServedUse& requests) {
    const auto name = [](bool is_inside) {
      return is_inside ? "threads inside a request" : "requests at once";
    };
    const double rates = inside.latency->samples_per_second / requests.latency->samples_per_second;
    const double times = requests.latency->median.median / inside.latency->median.median;
    fmt::print("  {} on {} threads: more throughput with {} ({}), lower latency with {} ({})\n",
               inside.use.text(), inside.threads, name(rates > 1),
               factor_text(std::max(rates, 1 / rates)), name(times > 1),
               factor_text(std::max(times, 1 / times)));
  }

  void print_accuracy(const std::vector<ServedUse>& all) const {
    for (const ServedUse& c : all)
      if (!std::isnan(c.accuracy))
        fmt::print("  {}: {:.2f} % of {} held-out images (data={}); train reported {:.2f} %{}\n",
                   c.use.text(), 100 * c.accuracy, inputs_.data->test.count(),
                   inputs_.data->test.origin, 100 * weights_.accuracy,
                   data::hash_of(*inputs_.data) == weights_.data_hash ? "" : " on other images");
  }

  const InferOptions& options_;
  InferInputs inputs_;
  Weights weights_;
  Run& run_;
  std::vector<float> images_;  // of the largest batch; others are its beginning
  Outputs reference_;          // of images_
  std::vector<std::pair<std::string, std::vector<float>>> named_parameters_;  // to export
  std::map<std::vector<std::string>, std::string> measured_;  // status; before, in this folder
  std::set<std::string> with_accuracy_;                       // uses whose accuracy is known
  std::optional<Service> kept_;
  bool has_failed_ = false, has_verified_ = false;
};

int run(InferOptions& options) {
  report_crashes();
  const MpiSession& mpi = mpi_session();
  options.threads = threads_that_run(options.threads);
  InferInputs inputs = mpi.agree([&] { return inputs_of(options); });
  require_same_inputs(options.network, {});
  Weights weights = weights_of(inputs.checkpoint);
  Run run(options.run.options(inputs.data ? inputs.data->train.origin : "none"));
  Inference inference(options, std::move(inputs), std::move(weights), run);
  for (const int batch : without_repeats(options.batch)) inference.measure(batch);
  run.save();
  if (run.writes()) {
    fmt::print("\n{}\n", (run.folder().directory() / "inference.csv").string());
    if (!options.exported.empty()) inference.export_to(options.exported);
  }
  return inference.has_failed() ? 1 : inference.has_verified() ? 0 : nothing_verified;
}

}  // namespace

Command infer_command(CLI::App& program) {
  CLI::App* app = program.add_subcommand("infer", "Time requests to a network that infers");
  auto options = std::make_shared<InferOptions>();
  options->network.add_to(*app);
  add_numbers(*app, "--batch", options->batch, "Samples of a request, for example 1,8,64",
              most_counted);
  app->add_option("--use", options->use,
                  "Rungs, for example best,int8,vendor; a primitive=rung is an exception of the "
                  "one before it, as in best,convolution=direct");
  add_threads(*app, options->threads, "Numbers of threads, for example 1,2");
  app->add_option("--split", options->split,
                  "What several threads share: the work inside a request, or the requests, one "
                  "thread each")
      ->check(CLI::IsMember({"inside", "requests", "both"}));
  auto* budget =
      app->add_option("--budget", options->measure.budget_seconds, "Seconds of timing for each row")
          ->check(positive_number());
  app->add_option("--requests", options->measure.requests,
                  "Requests for each row instead, at least so many")
      ->transform(whole_number(2, 10'000'000))
      ->excludes(budget);
  auto* weights =
      app->add_option("--weights", options->weights,
                      "Checkpoint of stepladder train, or its folder: the newest one; by default "
                      "the network's initial weights");
  weights->check(CLI::ExistingPath);
  app->add_option("--data", options->data,
                  "Images for the accuracy with these weights, as for train")
      ->needs(weights);
  app->add_option("--export", options->exported,
                  "File for other frameworks: parameters by name, images, and what the largest "
                  "batch should give");
  options->run.add_to(*app, "Seed of weights and images");
  return {app, [options] { return run(*options); }};
}

}  // namespace stepladder

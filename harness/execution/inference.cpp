#include "harness/execution/inference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <limits>
#include <mutex>
#include <nlohmann/json.hpp>

#include "harness/execution/measured_step.hpp"
#include "harness/io/json_text.hpp"
#include "harness/io/now.hpp"
#include "harness/ranks/communicator.hpp"

namespace stepladder {
namespace {

constexpr std::size_t most_timed_by_layer = 10'000;  // requests of a service

double worst_error(const Service& service, const Outputs& reference) {
  double error = 0;
  for (const auto& network : service.networks)
    error = std::max(error, output_error(*network, reference));
  return error;
}

// Calls work(thread) on every thread and rethrows the first exception.
void run_on_all(ThreadPool& pool, const std::function<void(int)>& work) {
  std::exception_ptr error;
  std::mutex mutex;
  pool.run([&](int thread) {
    try {
      work(thread);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
    }
  });
  if (error) std::rethrow_exception(error);
}

// The rungs that the other network has.
void choose_as(const TrainableNetwork& other, TrainableNetwork& network) {
  for (std::size_t i = 0; i < network.operations().size(); ++i) {
    Operation& operation = network.operations()[i];
    for (Alternative& one : operation.alternatives)
      if (one.variant == other.operations()[i].variant) {
        operation.variant = one.variant;
        operation.run = std::move(one.run);
        operation.prepare = std::move(one.prepare);
      }
    operation.alternatives.clear();
  }
}

void set_parameters(TrainableNetwork& network, std::span<const float> parameters) {
  if (parameters.empty()) return;
  const std::span<float> own = network.parameters();
  if (own.size() != parameters.size())
    throw std::runtime_error(fmt::format("the checkpoint has {} parameters, the network {}",
                                         parameters.size(), own.size()));
  std::ranges::copy(parameters, own.begin());
}

// Serves the requests of a service, and keeps their times.
class Server {
 public:
  explicit Server(Service& service)
      : service_(service), pool_(static_cast<int>(service.networks.size())) {
    service_.networks.front()->evaluate();
    const double start = now();
    service_.networks.front()->evaluate();
    estimate_ = mpi_session().max(std::max(now() - start, 1e-8));
    layers_.resize(network(0).operations().size());
  }

  double estimate() const { return estimate_; }  // seconds of one request

  // Requests of each network in a repetition, from now on.
  void set_requests(std::int64_t requests) {
    latencies_.assign(workers(), std::vector<double>(static_cast<std::size_t>(requests)));
  }

  void serve() {
    std::vector<double> starts(workers()), ends(workers());
    run_on_all(pool_, [&](int thread) { network(thread).evaluate(); });
    run_on_all(pool_, [&](int thread) {
      const auto worker = static_cast<std::size_t>(thread);
      double last = starts[worker] = now();
      for (double& latency : latencies_[worker]) {
        network(thread).evaluate();
        const double end = now();
        latency = end - last;
        last = end;
        if (thread == 0 && record_layers()) last = now();
      }
      ends[worker] = last;
    });
    RequestSeries done{.latencies = {},
                       .elapsed = *std::max_element(ends.begin(), ends.end()) -
                                  *std::min_element(starts.begin(), starts.end())};
    for (const std::vector<double>& one : latencies_)
      done.latencies.insert(done.latencies.end(), one.begin(), one.end());
    if (is_measured_) repetitions_.push_back(std::move(done));
  }

  // The runs before estimate the time.
  void begin() { is_measured_ = true; }

  std::vector<RequestSeries>& repetitions() { return repetitions_; }

  std::vector<LayerLatency> layers() {
    std::vector<LayerLatency> all;
    double sum = 0;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const Operation& operation = network(0).operations()[i];
      all.push_back({operation.layer, operation.variant, summarize(layers_[i]).median});
      sum += all.back().median_seconds;
    }
    for (LayerLatency& one : all) one.share = one.median_seconds / sum;
    return all;
  }

 private:
  std::size_t workers() const { return service_.networks.size(); }
  TrainableNetwork& network(int thread) {
    return *service_.networks[static_cast<std::size_t>(thread)];
  }

  bool record_layers() {
    if (!is_measured_ || layers_.front().size() == most_timed_by_layer) return false;
    for (std::size_t i = 0; i < layers_.size(); ++i)
      layers_[i].push_back(network(0).operations()[i].seconds);
    return true;
  }

  Service& service_;
  ThreadPool pool_;
  double estimate_ = 0;
  bool is_measured_ = false;
  std::vector<std::vector<double>> latencies_;  // [network][request]
  std::vector<std::vector<double>> layers_;     // [operation], seconds
  std::vector<RequestSeries> repetitions_;
};

// Those of the repetitions that were not disturbed; of all if most were.
std::vector<RequestSeries> counted(std::vector<RequestSeries> repetitions,
                                   const Measured& measured) {
  std::vector<RequestSeries> all;
  for (std::size_t i = 0; i < measured.samples.size(); ++i)
    if (!measured.samples[i].disturbed || measured.is_disturbed())
      all.push_back(std::move(repetitions[i]));
  return all;
}

// Of every rank, on every rank.
std::vector<std::vector<RequestSeries>> of_all_ranks(std::vector<RequestSeries> own) {
  if (mpi_session().ranks() == 1) return {std::move(own)};
  nlohmann::json json = nlohmann::json::array();
  for (const RequestSeries& one : own) json.push_back({one.elapsed, one.latencies});
  std::vector<std::vector<RequestSeries>> all;
  for (const std::string& text : Communicator("inference").texts(json_text(json))) {
    all.emplace_back();
    for (const nlohmann::json& one : parse_json(text))
      all.back().push_back({.latencies = one[1].get<std::vector<double>>(), .elapsed = one[0]});
  }
  return all;
}

}  // namespace

const char* name_of(Split split) { return split == Split::inside ? "inside" : "requests"; }

std::string Service::name() const {
  return fmt::format("inference/{}/{}/batch:{}/threads:{}/{}", networks.front()->description().name,
                     use, batch(), threads, name_of(split));
}

Service make_service(const network::NetworkDescription& description, const UseSpec& use,
                     Split split, int threads, std::uint64_t seed,
                     std::span<const float> parameters, TrainableNetwork* owner, PlanStore& plans) {
  Service service{.use = use.text(), .split = split, .threads = threads};
  const int count = split == Split::requests ? threads : 1;
  for (int i = 0; i < count; ++i) {
    NetworkOptions options{.threads = split == Split::inside ? threads : 1,
                           .seed = seed,
                           .alternatives = true,
                           .inference = true};
    if (owner != nullptr) options.parameters_of = &owner->parts();
    service.networks.push_back(
        std::make_unique<TrainableNetwork>(description, use, options, plans));
    TrainableNetwork& network = *service.networks.back();
    if (owner == nullptr) {
      owner = &network;
      set_parameters(network, parameters);
    }
    if (i == 0)
      choose_within_step(network);
    else
      choose_as(*service.networks.front(), network);
  }
  return service;
}

double serve_once(Service& service, std::span<const float> images, const Outputs& reference) {
  for (const auto& network : service.networks) {
    std::ranges::copy(images, network->images().begin());
    std::ranges::fill(network->parts().probabilities.host, std::numeric_limits<float>::quiet_NaN());
  }
  ThreadPool pool(static_cast<int>(service.networks.size()));
  run_on_all(pool,
             [&](int thread) { service.networks[static_cast<std::size_t>(thread)]->evaluate(); });
  return mpi_session().max(worst_error(service, reference));
}

Latency latency_of(const std::vector<std::vector<RequestSeries>>& by_rank, std::int64_t batch) {
  std::vector<double> all, medians, rates;
  for (std::size_t r = 0; r < by_rank.front().size(); ++r) {
    std::vector<double> of_repetition;
    double rate = 0;
    for (const std::vector<RequestSeries>& of_rank : by_rank) {
      const RequestSeries& one = of_rank[r];
      of_repetition.insert(of_repetition.end(), one.latencies.begin(), one.latencies.end());
      rate += static_cast<double>(batch) * static_cast<double>(one.latencies.size()) / one.elapsed;
    }
    all.insert(all.end(), of_repetition.begin(), of_repetition.end());
    medians.push_back(summarize(std::move(of_repetition)).median);
    rates.push_back(rate);
  }
  std::sort(all.begin(), all.end());
  return {.requests = static_cast<std::int64_t>(all.size()),
          .median = summarize(std::move(medians)),
          .p50 = percentile(all, 50),
          .p90 = percentile(all, 90),
          .p99 = percentile(all, 99),
          .max = all.back(),
          .samples_per_second = summarize(std::move(rates)).median,
          .layers = {}};
}

std::vector<Latency> measure_inference(std::vector<Service>& services, const Outputs& reference,
                                       Run& run, const InferenceOptions& options) {
  const MpiSession& mpi = mpi_session();
  // A repetition is one iteration of the meter, in which each network serves several requests.
  const bool counts = options.requests > 0;
  MeasureOptions measure{.repetitions = options.repetitions,
                         .budget_seconds = counts ? 1e9 : options.budget_seconds,
                         .iterations = 1};
  if (counts)
    measure.repetitions =
        static_cast<int>(std::clamp<std::int64_t>(options.requests, 2, options.repetitions));
  std::vector<Server> servers(services.begin(), services.end());
  std::vector<Subject> subjects;
  for (std::size_t s = 0; s < services.size(); ++s) {
    Server& server = servers[s];
    const auto at_once = static_cast<std::int64_t>(services[s].networks.size());
    const std::int64_t parts = measure.repetitions * at_once;
    const MeasureOptions budget{.repetitions = options.repetitions,
                                .budget_seconds = options.budget_seconds};
    const std::int64_t requests = counts ? (options.requests + parts - 1) / parts
                                         : repeats_of(server.estimate(), budget).iterations;
    server.set_requests(requests);
    subjects.push_back({.name = services[s].name(),
                        .run = [&server](std::int64_t) { server.serve(); },
                        .clock = mpi.ranks() > 1 ? Clock::ranks : Clock::wall,
                        .estimate_seconds = server.estimate() * static_cast<double>(requests),
                        .before_repetition = [&server](std::int64_t, bool) { server.begin(); }});
  }
  const std::vector<Measured> measured = run.meter().measure(subjects, measure);

  std::vector<Latency> results;
  for (std::size_t s = 0; s < services.size(); ++s) {
    if (!measured[s].error.empty())
      throw std::runtime_error(subjects[s].name + ": " + measured[s].error);
    Latency result =
        latency_of(of_all_ranks(counted(std::move(servers[s].repetitions()), measured[s])),
                   services[s].batch());
    result.disturbed = measured[s].is_disturbed();
    result.layers = servers[s].layers();
    result.error = mpi.max(worst_error(services[s], reference));
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace stepladder

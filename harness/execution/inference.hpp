// Measures inference: requests, each the forward pass of a network on one batch.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "harness/execution/network.hpp"
#include "harness/execution/reference_outputs.hpp"
#include "harness/results/run.hpp"

namespace stepladder {

// What the threads of a process share: the operations of a request, or the requests, one thread
// each.
enum class Split { inside, requests };
const char* name_of(Split split);

// The networks that serve requests at once: one, or with Split::requests one for each thread. They
// share the weights; prepacked rungs pack a copy for each network.
struct Service {
  std::string use;
  Split split = Split::inside;
  int threads = 1;
  std::vector<std::unique_ptr<TrainableNetwork>> networks{};

  std::int64_t batch() const { return networks.front()->batch(); }
  std::string name() const;  // for messages: "inference/mlp/best/batch:8/threads:2/inside"
};

// The weights are those of `owner`, a network of the same layers that outlives the service. If it
// is null, the first network of the service owns them: `parameters`, or drawn from the seed if
// there are none. The rungs are those that are fastest within the forward pass. Collective. Throws
// as TrainableNetwork does, and std::runtime_error if there are fewer or more parameters.
Service make_service(const network::NetworkDescription& description, const UseSpec& use,
                     Split split, int threads, std::uint64_t seed,
                     std::span<const float> parameters, TrainableNetwork* owner, PlanStore& plans);

// Runs all networks of the service at once on `images`, [batch, channels, height, width], with
// outputs that were NaN before. The largest output_error() of any network.
double serve_once(Service& service, std::span<const float> images, const Outputs& reference);

// The requests of one repetition on one rank, in seconds.
struct RequestSeries {
  std::vector<double> latencies;
  double elapsed = 0;  // from the first request's start to the last one's end
};

struct LayerLatency {
  std::string layer, variant;
  double median_seconds = 0;
  double share = 0;  // of the sum over the layers
};

struct Latency {
  std::int64_t requests = 0;  // of all ranks
  Summary median;             // of the medians of the repetitions
  double p50 = 0, p90 = 0, p99 = 0, max = 0;
  double samples_per_second = 0;     // of all ranks together, median of the repetitions
  bool disturbed = false;            // other work slowed most repetitions, and all of them count
  std::vector<LayerLatency> layers;  // of this rank's first network, in their order
  double error = 0;                  // output_error() of the last requests, of any network
};

// by_rank[rank][repetition]: as many repetitions on each rank, none empty. Percentiles are of the
// requests of all of them.
Latency latency_of(const std::vector<std::vector<RequestSeries>>& by_rank, std::int64_t batch);

struct InferenceOptions {
  int repetitions = 11;
  double budget_seconds = 1;  // for one service
  std::int64_t requests = 0;  // at least so many, whatever they take; 0: as the budget allows
};

// Serves requests, repetition by repetition, the services in turns. Each repetition begins with a
// request that does not count. With several ranks each serves requests of its own. Collective.
// Throws Interrupted, and std::runtime_error if a network throws.
std::vector<Latency> measure_inference(std::vector<Service>& services, const Outputs& reference,
                                       Run& run, const InferenceOptions& options);

}  // namespace stepladder

// Predicts the time of one update of the weights in a mode of training: from the times of the
// layers, measured on the spot, and from what messages cost between the ranks. Nothing is trained.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/planner/layer_times.hpp"
#include "kernels/common/links.hpp"

namespace stepladder {

// Where the replicas of a training run.
struct Cluster {
  int ranks = 1, hosts = 1;  // as many ranks on every host
  int cores = 1;             // of a host
  int threads = 1;           // inside an operation
};

// Of one update of the weights. The times are means over the ranks, as in train.csv.
struct Prediction {
  std::string mode;        // as typed
  std::string all_reduce;  // the rung that reduces the gradients, if one does
  bool synchronous = true;
  double compute = 0;   // seconds
  double exposed = 0;   // seconds of communication in which a rank computes nothing
  double waiting = 0;   // seconds of waiting for other ranks; the bubble of a pipeline
  double bytes = 0;     // that a rank sends
  std::string why_not;  // the mode cannot run, or has no prediction; else empty
  double seconds() const { return compute + exposed + waiting; }
};

// Collective, as the times of the layers are. `links`: of the cluster; not read for modes of one
// process but for their curves of copies and additions.
Prediction predict(const network::NetworkDescription& network, const UseSpec& use,
                   const Cluster& cluster, const Links& links, LayerTimes& times,
                   const ModeSpec& mode);

// What a rank of a pipeline does with one micro-batch, in seconds.
struct StageTimes {
  double forward = 0, backward = 0;  // with the messages that it receives
  double update = 0;
};
// Seconds of a step: every stage begins what comes next in its schedule as soon as its input is
// there. With 1f1b a stage runs a backward pass as soon as there is one.
double pipeline_seconds(const std::vector<StageTimes>& stages, int micro_batches, bool is_1f1b);

// Model parallelism: bytes that all ranks together send per batch between two layers.
struct ActivationExchange {
  std::string from, to;
  double forward = 0, backward = 0;
  // Forward, as Table 4 of the survey counts: grouped layers exchange nothing, and one rank has the
  // last layer.
  double survey = 0;
};
std::vector<ActivationExchange> activation_exchanges(const network::NetworkDescription& network,
                                                     int ranks);

}  // namespace stepladder

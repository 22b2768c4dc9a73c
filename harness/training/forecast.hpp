// Predicts one update of the weights in a mode of training. Each mode's file registers a function
// that fills `predicted` from the times of the layers and the costs of messages; what several modes
// need is here. Nothing is trained.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "harness/network/description.hpp"
#include "harness/rungs/use_spec.hpp"
#include "harness/training/mode_spec.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/common/links.hpp"

namespace stepladder {

// Where the replicas of a training run.
struct Cluster {
  int ranks = 1, hosts = 1;  // as many ranks on every host
  int cores = 1;             // of a host
  int threads = 1;           // inside an operation
};

// One update of the weights. The times are means over the ranks, as in train.csv.
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

// Seconds of a replica, medians over steps, means over the replicas that compute.
struct StepTimes {
  struct Layer {
    std::string name;
    double forward = 0, backward = 0;
    std::int64_t parameters = 0;  // weights and biases
  };
  std::vector<Layer> layers;  // as network::pool_before_relu() orders them
  double draw = 0, forward = 0, backward = 0, update = 0;
  // Where all begin a step together: of the replica that ends last. gradient: draw, forward,
  // backward.
  double slowest_gradient = 0, slowest_step = 0;
  double free_step = 0;         // where no replica waits for another
  double update_alone = 0;      // while the others wait
  std::vector<double> updated;  // bytes of the weights of each operation of the update
};

class LayerTimes {
 public:
  virtual ~LayerTimes() = default;
  // The whole network on `samples` images, while `active` of all replicas compute.
  virtual const StepTimes& whole(std::int64_t samples, int active) = 0;
  // A network that is divided among `ranks`, without its exchanges.
  virtual const StepTimes& split(std::int64_t samples, int ranks, int active) = 0;
};

struct Forecast {
  const network::NetworkDescription& network;
  const UseSpec& use;
  const Cluster& cluster;
  const Links& links;  // of the cluster; modes of one process read its copies and additions alone
  LayerTimes& times;
  const ModeSpec& mode;
  Prediction predicted = {};

  std::int64_t batch() const { return network.batch; }
  double p() const { return cluster.ranks; }
  double n() const { return 4 * static_cast<double>(network::parameter_count(network)); }  // bytes
  int of_host() const { return cluster.ranks / cluster.hosts; }
  bool one_host() const { return cluster.hosts == 1; }
  // Throws CannotRun.
  void require_one_host() const;
  // Ranks that compute at the same time, each on one core.
  double cores() const { return std::max(1, cluster.cores / cluster.threads); }
  std::int64_t part(std::int64_t parts) const { return ceil_div(batch(), parts); }

  double add(double bytes) const { return links.add(bytes); }
  double copy(double bytes) const { return links.copy(bytes); }
  // Between neighbours of a ring: one at a time, or all at once.
  double hop(double bytes) const { return ring().send(bytes); }
  double shift(double bytes) const { return ring().shift(bytes); }
  // Between rank 0 and all others, one after another.
  double to_all(double bytes) const;
  CommunicationCost cost(double bytes) const {
    return {.p = p(), .n = bytes, .g = static_cast<double>(of_host()), .l = links};
  }

  struct Reduction {
    double seconds = 0;
    std::string rung;
    double bytes = 0;  // that a rank sends
  };
  // By the rung that `chosen` names, or the fastest of several. Those in a window need one host.
  Reduction all_reduce(const UseSpec& chosen, double bytes) const;

  // One replica alone.
  void one_replica() { predicted.compute = times.whole(batch(), 1).free_step; }
  // The gradient of a part of the batch and the update, on all ranks. Parts may differ in size.
  void compute_parts(double update);
  double update_of_all();

  // The rank that has the token adds its change at the end of a step and hands the token on. The
  // next one comes to the end of a step half a step later on average, so a round of r ranks takes
  // r/2 steps, but at least one. Returns the seconds of a step with its share of the token.
  double with_token(double step, double ranks, double bytes, double message);

  // Exchanges of activations among `ranks` by the collectives of Open MPI: an all-gather, and for
  // the gradients a reduction to one rank that scatters the sums, or an all-reduce in a ring; with
  // the copies between the layouts of all channels and of a rank's.
  double exchange(std::int64_t samples, int ranks, const std::function<double(double)>& message);

 private:
  const LinkCosts& ring() const { return one_host() ? links.within : links.between; }
  bool leaves_the_host(detail::CostFunction rung, double bytes) const;
};

// What a rank of a pipeline does with one micro-batch, in seconds.
struct StageTimes {
  double forward = 0, backward = 0;  // with the messages that it receives
  double update = 0;
};
// Seconds of a step: every stage begins what comes next in its schedule as soon as its input is
// there. With 1f1b a stage runs a backward pass as soon as there is one.
double pipeline_seconds(const std::vector<StageTimes>& stages, int micro_batches, bool is_1f1b);

}  // namespace stepladder

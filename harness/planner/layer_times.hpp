// The times of the layers of a network, measured on the spot while several replicas compute at the
// same time: ranks of this program, or threads of it without mpirun. They share caches, memory and
// cores as the replicas of a training do.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness/training/mode.hpp"

namespace stepladder {

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

// A segment of a network whose filters and neurons are divided among ranks (split_network.hpp).
struct SplitSegment {
  network::NetworkDescription part;  // on the rank that has most channels
  std::string layer;                 // its first one
  bool is_split = false;             // each rank has some channels; else each has all
  bool receives_own = false;         // each rank needs what it computed in the segment before
  double values = 0;                 // of the input of all ranks, per sample
};
std::vector<SplitSegment> split_segments(const network::NetworkDescription& network, int ranks);

class LayerTimes {
 public:
  virtual ~LayerTimes() = default;
  // Of the whole network on `samples` images, while `active` of all replicas compute.
  virtual const StepTimes& whole(std::int64_t samples, int active) = 0;
  // Of a network that is divided among `ranks`, without its exchanges.
  virtual const StepTimes& split(std::int64_t samples, int ranks, int active) = 0;
};

class MeasuredLayerTimes final : public LayerTimes {
 public:
  // Of setup.description. Replicas are the ranks of this program if it has several. Else threads
  // take the place of the ranks of a host, at most one per core: where a host has more, times grow
  // by its ranks per core. Keeps a reference.
  MeasuredLayerTimes(const TrainingSetup& setup, int hosts, int cores);

  // Collective.
  const StepTimes& whole(std::int64_t samples, int active) override;
  const StepTimes& split(std::int64_t samples, int ranks, int active) override;

 private:
  class Replica;
  StepTimes measure(const std::vector<network::NetworkDescription>& parts, int active);

  const TrainingSetup& setup_;
  int hosts_, cores_;
  Communicator communicator_{"the times of the layers"};
  std::map<std::array<std::int64_t, 3>, StepTimes> known_;  // of samples, ranks, active
};

}  // namespace stepladder

// The times of the layers of a network, measured on the spot while several replicas compute at the
// same time: ranks of this program, or threads of it without mpirun. They share caches, memory and
// cores as the replicas of a training do.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness/training/forecast.hpp"
#include "harness/training/mode.hpp"

namespace stepladder {

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

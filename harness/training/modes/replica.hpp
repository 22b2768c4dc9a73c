// A replica of data-parallel training: a network on this rank or thread, and its part of each
// batch.
#pragma once

#include <cstdint>
#include <span>

#include "harness/data/batches.hpp"
#include "harness/training/mode.hpp"

namespace stepladder {

class Replica {
 public:
  // Part `part` of `parts` of each batch of setup.description; parts differ by one sample at most,
  // and are empty if there are more parts than samples. Threads, seed and replica of `options` are
  // overwritten.
  Replica(const TrainingSetup& setup, const UseSpec& use, int part, int parts,
          NetworkOptions options);

  // Draws this part of batch `number`, from 0.
  void draw(std::int64_t number);
  // After draw(): computes gradients(), scaled so that their mean over the parts is the gradient of
  // the batch's mean loss. Returns this part's contribution to that loss: the sum over the parts is
  // the loss.
  double gradient();
  void update(double learning_rate) { network_.update(learning_rate); }

  int samples() const { return count_; }
  TrainableNetwork& network() { return network_; }
  std::span<float> gradients() { return network_.parts().gradients.host; }
  std::span<float> parameters() { return network_.parameters(); }

 private:
  int first_, count_, parts_;
  std::int64_t whole_;  // batch
  TrainableNetwork network_;
  data::Batches batches_;
};

}  // namespace stepladder

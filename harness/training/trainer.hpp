// Training: steps on random batches of a data set, and the accuracy on a test set.
#pragma once

#include <cstdint>

#include "harness/data/batches.hpp"
#include "harness/data/dataset.hpp"
#include "harness/execution/network.hpp"

namespace stepladder {

// The learning rate after `samples` samples: multiplied by `decay` every `decay_every_samples`.
double learning_rate_after(const network::OptimizerDescription& optimizer, std::int64_t samples);

// Throws std::runtime_error if `loss`, that of step `step` (from 1) before its update, is not
// finite.
void require_finite(double loss, const network::NetworkDescription& network, std::int64_t step,
                    double learning_rate);

// The fraction of images, 0 to 1, whose largest probability is that of the label; without dropout.
// The data set must hold at least one batch.
double accuracy_on(TrainableNetwork& network, const data::Dataset& data);
// The same of all ranks, each of which takes a part of the images. Collective.
double accuracy_over_ranks(TrainableNetwork& network, const data::Dataset& data);
// The number of such images among [first, end).
std::int64_t count_correct(TrainableNetwork& network, const data::Dataset& data, std::size_t first,
                           std::size_t end);

class Trainer {
 public:
  // Keeps references to both. `shift`: see data::Batches. Throws std::invalid_argument if the data
  // set is smaller than a batch.
  Trainer(TrainableNetwork& network, const data::Dataset& data, std::uint64_t seed, int shift);

  // One step on the next batch, with the learning rate of the network's optimizer or another one.
  // Throws std::runtime_error if the loss is not finite.
  void step();
  void step(double learning_rate);
  // Goes on after so many steps: the next batch is that of step number `steps`.
  void start_at(std::int64_t steps);

  // State after the last step; 0 before the first.
  std::int64_t steps() const { return steps_; }
  int epoch() const { return epoch_; }   // from 0
  double loss() const { return loss_; }  // mean of the batch, before its update
  double learning_rate() const { return learning_rate_; }
  double seconds() const { return seconds_; }  // of all steps together, batches included
  int steps_per_epoch() const { return batches_.per_epoch(); }

 private:
  void draw();

  TrainableNetwork& network_;
  data::Batches batches_;
  bool is_prefetched_ = false;  // the batch of the next step
  std::int64_t drawn_ = 0;      // batches
  int epoch_ = 0;
  std::int64_t steps_ = 0;
  double loss_ = 0, learning_rate_ = 0, seconds_ = 0;
};

}  // namespace stepladder

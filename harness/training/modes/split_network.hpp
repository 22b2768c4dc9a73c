// A network whose filters and neurons are divided among ranks (Krizhevsky, One weird trick for
// parallelizing convolutional neural networks, 2014). All ranks compute on the same batch. A layer
// with weights needs the activations of all ranks, an all-gather, and each rank's gradient of its
// input is a partial sum, a reduce-scatter. Where the groups of a convolution are those of the
// ranks nothing is exchanged.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "harness/training/mode.hpp"
#include "harness/training/modes/segments.hpp"

namespace stepladder {

class SplitNetwork {
 public:
  // Over the ranks of `communicator`. Collective. Throws std::runtime_error if the groups of a
  // convolution cannot be divided among the ranks.
  SplitNetwork(const TrainingSetup& setup, const Communicator& communicator);
  ~SplitNetwork();

  // The whole network: the initial weights, and those of collect().
  TrainableNetwork& whole() { return *whole_; }
  // From the whole network to the parts, weights and the optimizer's state.
  void take();
  // From the parts of all ranks to the whole network of each rank, with the optimizer's state.
  void collect();

  // Collective. On the batch in whole().images() and labels(): the mean loss.
  double forward();
  void backward();
  void update(double learning_rate);
  void set_next_step(std::int64_t step);
  void after_operations(const std::function<void(const Operation&)>& call);

  // The parameters of this rank, all parts after one another.
  std::size_t parameter_count() const;
  void read_parameters(std::span<float> into);
  void write_parameters(std::span<const float> from);

  const double& exchange_seconds() const { return seconds_; }  // so far
  double bytes_sent() const { return bytes_; }                 // so far
  // A line for each exchange: the layer, bytes of all ranks forward and backward per batch.
  std::string exchanges() const;

 private:
  struct Part;
  void pass_on(std::size_t from);  // activations of part `from` to the next one
  void pass_back(std::size_t to);  // gradients of the input of part `to` to the one before
  std::span<float> output(Part& part);

  const Communicator& communicator_;
  std::unique_ptr<TrainableNetwork> whole_;
  std::vector<std::unique_ptr<Part>> parts_;
  std::vector<float> packed_, received_;
  double seconds_ = 0, bytes_ = 0;
};

}  // namespace stepladder

// A network made ready to train: its tensors, and the plans that one step runs, in order. They are the
// objects that `bench` measures.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "harness/network/description.hpp"
#include "harness/training/plan_store.hpp"
#include "harness/training/use_spec.hpp"
#include "kernels/common/aligned.hpp"
#include "kernels/common/thread_pool.hpp"

namespace stepladder {

enum class Phase { forward, backward, update, all_reduce };
const char* name_of(Phase phase);

// One timed piece of a step: a plan bound to the network's tensors.
struct Operation {
  std::string layer;  // "conv1"; "conv1.bias" for its bias
  Phase phase;
  std::string variant;
  std::function<void()> run;
  bool beside_next = false;  // independent of the operation after it: both may run at once
  double seconds = 0;        // of the last step
};

struct NetworkOptions {
  int threads = 1;         // inside an operation
  int inter = 1;           // operations at once: 1 or 2, input gradient beside weight gradient
  std::uint64_t seed = 1;  // of weights and dropout
};

class TrainableNetwork {
 public:
  // Throws std::runtime_error when a layer's variant fails verification or none can run.
  TrainableNetwork(network::NetworkDescription description, const UseSpec& use,
                   const NetworkOptions& options, PlanStore& plans);

  const network::NetworkDescription& description() const { return description_; }
  std::int64_t batch() const { return description_.batch; }
  std::span<const float> images() const { return {activations_.front(), input_count_}; }
  std::span<const std::uint8_t> labels() const { return labels_; }
  std::span<float> images() { return {activations_.front(), input_count_}; }  // [batch, c, h, w]
  std::span<std::uint8_t> labels() { return labels_; }                        // [batch]
  std::span<const float> probabilities() const;                               // [batch, classes]
  // Of all layers; the gradients are those of the last backward().
  std::span<float> parameters() { return {parameters_.get(), parameter_count_}; }
  std::span<const float> gradients() const { return {gradients_.get(), parameter_count_}; }
  // Where the parameters of a layer stand in parameters(): its weights, or its biases.
  struct Parameter {
    std::string name;  // "conv1.weights", "conv1.biases"
    std::size_t offset, count;
  };
  const std::vector<Parameter>& parameter_list() const { return parameter_list_; }

  // One step on images() and labels(): forward, backward, all-reduce with several ranks, update.
  // Returns the batch's mean loss before the update.
  double step(double learning_rate);
  double forward();  // alone, dropout active as in training; the mean loss
  void backward();   // after forward()
  // Forward without dropout, which leaves probabilities() and needs no labels.
  void evaluate();

  std::vector<Operation>& operations() { return operations_; }

 private:
  friend class NetworkBuilder;
  void run_phase(Phase phase);
  double mean_loss() const;

  network::NetworkDescription description_;
  NetworkOptions options_;
  std::size_t input_count_ = 0, parameter_count_ = 0;
  std::vector<float*> activations_, activation_gradients_;  // [layer + 1]; [0] the images and null
  std::vector<AlignedArray<float>> memory_;  // what these and the layers' workspaces point into
  std::vector<std::uint8_t> labels_;
  std::vector<std::vector<std::uint8_t>> argmax_;  // [layer], of max_pool layers
  std::vector<float*> scales_;                     // [layer], of LRN layers
  AlignedArray<float> loss_;                       // [batch]
  AlignedArray<float> parameters_, gradients_, state1_, state2_;
  std::vector<Parameter> parameter_list_;
  std::vector<Operation> operations_;
  std::vector<std::function<void()>> evaluation_;  // forward operations, dropout copies instead
  std::unique_ptr<ThreadPool> beside_;             // when inter is 2
  double learning_rate_ = 0;
  std::int64_t step_ = 1;  // for dropout's masks and Adam's correction
};

}  // namespace stepladder

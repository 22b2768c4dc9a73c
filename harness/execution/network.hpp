// A network that can be trained: its tensors, and the plans that one step runs in order. `bench`
// measures the same plans. All tensors are in the memory that the plans work in, the host's or a
// device's. On a device only batches, losses, probabilities and parameters are copied.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "harness/execution/builder.hpp"
#include "harness/execution/parts.hpp"
#include "harness/network/description.hpp"
#include "harness/rungs/plan_store.hpp"
#include "harness/rungs/use_spec.hpp"
#include "kernels/common/cpu/thread_pool.hpp"

namespace stepladder {

// Where the rungs that `use` selects for this network run: cpu or cuda. Throws NoVariant unless all
// run in one place and this machine has it.
Place place_of(const network::NetworkDescription& description, const UseSpec& use);

class TrainableNetwork {
 public:
  // Throws std::runtime_error if the variant chosen for a layer fails verification, NoVariant if
  // none supports it.
  TrainableNetwork(network::NetworkDescription description, const UseSpec& chosen,
                   const NetworkOptions& options, PlanStore& plans);

  const network::NetworkDescription& description() const { return description_; }
  std::int64_t batch() const { return description_.batch; }
  Place place() const { return parts_->memory.place(); }

  // An estimate of the relative error of the outputs: each product passes its operands' error on
  // and adds its own. 0 unless a rung rounds or quantizes its operands.
  double operand_error() const { return parts_->operand_error; }

  // In host memory: the batch that step(), forward() and evaluate() use.
  std::span<const float> images() const { return host_batch().images.host; }
  std::span<const std::uint8_t> labels() const { return host_batch().labels.host; }
  std::span<float> images() { return host_batch().images.host; }         // [batch, c, h, w]
  std::span<std::uint8_t> labels() { return host_batch().labels.host; }  // [batch]
  std::span<const float> probabilities() const {                         // [batch, classes]
    return parts_->probabilities.host;
  }

  // The input of the last layer, on the CPU.
  std::span<const float> logits() const {  // [batch, classes]
    return {*(parts_->activations.end() - 2), output_count()};
  }

  // Parameters and gradients of all layers in host memory. A device has its own copy:
  // upload_parameters() copies these parameters to the device, download() copies its parameters,
  // gradients and optimizer state here. The gradients are those of the last backward(). Inference
  // packs the weights anew in its first pass after a call of parameters() or upload_parameters();
  // other networks that share them need a call of their own.
  std::span<float> parameters() {
    is_packed_ = false;
    return parts_->parameters.host;
  }
  std::span<const float> gradients() const { return parts_->gradients.host; }
  void upload_parameters();
  void download();
  // The optimizer's state of each parameter in host memory: state1 and state2 of sgd_update.
  // upload_state() copies it to the device.
  void upload_state();
  std::span<float> state1() { return parts_->state1.host; }
  std::span<float> state2() { return parts_->state2.host; }
  // All that a training changes.
  std::array<std::span<float>, 3> trained() { return {parameters(), state1(), state2()}; }
  // Each layer's weights and biases in parameters().
  const std::vector<ParameterRange>& parameter_list() const { return parts_->parameter_list; }

  // One step on images() and labels(): forward, backward, all-reduce with several ranks, update.
  // Returns the batch's mean loss before the update.
  double step(double learning_rate);
  double forward();                   // only; with dropout, as in training. Returns the mean loss.
  void backward();                    // after forward()
  void update(double learning_rate);  // after backward(); ends the step
  // Forward without dropout, for probabilities(). Needs no labels. With NetworkOptions::inference
  // the only pass; it measures Operation::seconds.
  void evaluate();
  // A step that measures Operation::seconds. On the CPU every step does. On a device no operations
  // run concurrently, the events between them take time, and launch overheads are not included.
  // Some other step must precede it.
  double timed_step(double learning_rate);

  // step() in two halves. On a device the host is free in between.
  void start_step(double learning_rate);
  double finish_step();
  // On a device: starts to copy the batch in images() and labels() there, concurrently with a
  // running step. The next start_step() uses it. images() and labels() are then those of another
  // batch, which must not be written before the first step that used it has finished.
  bool can_prefetch() const { return place() == Place::cuda; }
  void prefetch_batch();

  std::vector<Operation>& operations() { return parts_->operations; }
  const std::vector<Operation>& operations() const { return parts_->operations; }
  // On the CPU: called after each operation of forward(), backward() and update(), unless
  // operations run concurrently (inter = 2).
  void after_operations(std::function<void(const Operation&)> call) { after_ = std::move(call); }

  // The number of the next step, from 1: for dropout and for Adam.
  std::int64_t next_step() const { return parts_->step; }
  void set_next_step(std::int64_t step) { parts_->step = step; }

  // For the modes of training that split a network, on the CPU: the output of the last layer and
  // its gradient, which backward() reads; and the gradient of the input, if the options ask for it.
  std::span<float> output() { return {parts_->activations.back(), output_count()}; }
  std::span<float> output_gradient() {
    return {parts_->activation_gradients.back(), output_count()};
  }
  std::span<float> input_gradient() {
    return {parts_->activation_gradients.front(), images().size()};
  }
  NetworkParts& parts() { return *parts_; }

 private:
  using Operations = std::span<Operation>;

  std::size_t output_count() const { return parts_->probabilities.host.size(); }

  Batch& host_batch() const { return parts_->batches[host_batch_]; }
  void set_learning_rate(double learning_rate);
  Operations operations_of(Phase phase);
  void pack_weights();
  void run(Operations operations);
  void run_recorded();
  static std::vector<std::function<void()>> record(Operations operations);
  double mean_loss() const;

  network::NetworkDescription description_;
  NetworkOptions options_;
  std::unique_ptr<NetworkParts> parts_;
  std::size_t host_batch_ = 0;        // of parts_->batches, in images() and labels()
  bool is_prefetched_ = false;        // the other batch, for the next step
  bool is_packed_ = false;            // the weights, by the plans of inference
  std::unique_ptr<ThreadPool> pair_;  // two threads, if inter is 2
  std::function<void(const Operation&)> after_;
};

}  // namespace stepladder

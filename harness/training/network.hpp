// A network made ready to train: its tensors, and the plans that one step runs, in order. They are the
// objects that `bench` measures. All tensors stay in the memory that the plans work in, the host's or a
// device's; of a device, batches go there, and losses and probabilities come back.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "harness/network/description.hpp"
#include "harness/training/dependencies.hpp"
#include "harness/training/memory.hpp"
#include "harness/training/plan_store.hpp"
#include "harness/training/use_spec.hpp"
#include "kernels/common/cpu/thread_pool.hpp"

namespace stepladder {

enum class Phase {
  forward,
  backward,
  update,
  all_reduce,
  other
};  // other: copies to and from a device
const char* name_of(Phase phase);

// One timed piece of a step: a plan bound to the network's tensors, or a copy.
struct Operation {
  std::string layer;  // "conv1"; "conv1.bias" for its bias; "images", "labels", "loss" for copies
  Phase phase;
  std::string variant;
  std::function<void()> run;  // on a device: starts it
  bool beside_next = false;   // independent of the operation after it: both may run at once
  // What it reads and writes. In a recording two operations, neither of which writes what the other
  // touches, may run at once.
  std::function<std::vector<Access>()> accesses = [] { return std::vector{all_memory}; };
  bool changes = false;  // with the number of the step, so that it cannot be recorded
  double seconds = 0;    // of the last step; on a device, of the last timed_step()
};

struct NetworkOptions {
  int threads = 1;         // inside an operation
  int inter = 1;           // operations at once: 1 or 2, input gradient beside weight gradient
  std::uint64_t seed = 1;  // of weights and dropout
  bool graph = true;       // on a device: a step is recorded once, and starts as one
};

// Where the rungs work that `use` names for what this network consists of. Throws NoVariant unless all
// work in one place, which is there.
Place place_of(const network::NetworkDescription& description, const UseSpec& use);

class TrainableNetwork {
 public:
  // Throws std::runtime_error when a layer's variant fails verification or none can run.
  TrainableNetwork(network::NetworkDescription description, const UseSpec& use,
                   const NetworkOptions& options, PlanStore& plans);

  const network::NetworkDescription& description() const { return description_; }
  std::int64_t batch() const { return description_.batch; }
  Place place() const { return memory_.place(); }

  // In host memory: the batch that step(), forward() and evaluate() take.
  std::span<const float> images() const { return batches_[shown_].images.host; }
  std::span<const std::uint8_t> labels() const { return batches_[shown_].labels.host; }
  std::span<float> images() { return batches_[shown_].images.host; }            // [batch, c, h, w]
  std::span<std::uint8_t> labels() { return batches_[shown_].labels.host; }     // [batch]
  std::span<const float> probabilities() const { return probabilities_.host; }  // [batch, classes]

  // Of all layers, in host memory. On a device the network's own are elsewhere: upload_parameters()
  // makes these the network's, download() the network's these. The gradients are those of the last
  // backward().
  std::span<float> parameters() { return parameters_.host; }
  std::span<const float> gradients() const { return gradients_.host; }
  void upload_parameters();
  void download();
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
  // A step, after others, of which each operation notes its time. On the CPU all steps do; on a device
  // none runs beside another then, events between the operations take time themselves, and what the host
  // takes to start an operation does not count.
  double timed_step(double learning_rate);

  // step() in two halves: on a device, the host may do other things between them.
  void start_step(double learning_rate);
  double finish_step();
  // Of a device: the batch in images() and labels() goes there, perhaps while a step runs, and the next
  // start_step() takes it. From here on images() and labels() are those of another batch, which must
  // not be written to before the first step with the batch that was in them is finished.
  bool sends_ahead() const { return place() == Place::cuda; }
  void send_batch();

  std::vector<Operation>& operations() { return operations_; }

 private:
  friend class NetworkBuilder;
  using Operations = std::span<Operation>;

  struct Batch {
    Mirrored<float> images;
    Mirrored<std::uint8_t> labels;
    // A step on this batch as it was recorded: recordings of successive operations, and between them
    // those that change with every step. Empty before the first.
    std::vector<std::function<void()>> recorded;
  };

  void take(Batch& batch);
  void set(double learning_rate);
  Operations those_of(Phase phase);
  void run(Operations operations);
  void run_recorded();
  static std::vector<std::function<void()>> record(Operations operations);
  double mean_loss() const;

  network::NetworkDescription description_;
  NetworkOptions options_;
  Memory memory_;
  std::vector<Batch> batches_;  // on a device two: one is filled while the other is worked on
  std::size_t shown_ = 0;       // of batches_, in images() and labels()
  bool is_sent_ahead_ = false;  // the other one, for the next step
  Batch* taken_ = nullptr;      // what the plans work on
  std::vector<float*> activations_, activation_gradients_;  // [layer + 1]; [0] the images and null
  std::vector<std::uint8_t*> argmax_;                       // [layer], of max_pool layers
  Mirrored<float> probabilities_;                           // the last activations
  Mirrored<float> loss_;                                    // [batch]
  Mirrored<float> parameters_, gradients_;
  float *state1_ = nullptr, *state2_ = nullptr;  // of the optimizer, for each parameter
  std::vector<Parameter> parameter_list_;
  std::vector<Operation> operations_;  // copies of the batch, if any; forward, backward, update
  std::size_t batch_copies_ = 0;       // the first ones of operations_
  std::vector<std::function<void()>> evaluation_;  // forward operations, dropout copies instead
  std::unique_ptr<ThreadPool> beside_;             // when inter is 2
  double learning_rate_ = 0;
  std::int64_t step_ = 1;  // for dropout's masks and Adam's correction
};

}  // namespace stepladder

// A network's tensors and the operations that compute with them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "harness/execution/dependencies.hpp"
#include "harness/execution/memory.hpp"

namespace stepladder {

namespace all_reduce {
class Window;
}

// other: copies to and from a device.
enum class Phase { forward, backward, update, all_reduce, other };
const char* name_of(Phase phase);

// A rung for an operation: its plan, bound to the network's tensors.
struct Alternative {
  std::string variant;
  std::function<void()> run;
  std::function<void()> prepare{};  // as Operation::prepare
};

// A part of a step that is timed by itself: a plan bound to the network's tensors, or a copy.
struct Operation {
  std::string layer;  // "conv1"; "conv1.bias" for its bias; "images", "labels", "loss" for copies
  Phase phase;
  std::string variant;
  std::function<void()> run;          // on a device: asynchronous
  std::function<void()> prepare{};    // of inference: packs the weights; may be empty
  bool concurrent_with_next = false;  // independent of the next operation
  // The memory that it reads and writes. In a recorded step, operations run concurrently unless one
  // writes memory that the other accesses.
  std::function<std::vector<Access>()> accesses = [] { return std::vector{all_memory}; };
  bool depends_on_step = false;  // on the number of the step, and therefore cannot be recorded
  // In the last step; on a device, in the last timed_step(). start: by now(), on a device from the
  // start of the step; lane: 1 of the second of two concurrent operations, otherwise 0.
  double seconds = 0, start = 0;
  int lane = 0;
  // Where NetworkOptions ask for them: the chosen rung first, then those that were nearly as fast.
  std::vector<Alternative> alternatives{};
};

// A layer's weights or biases in the array of all parameters.
struct ParameterRange {
  std::string name;  // "conv1.weights", "conv1.biases"
  std::size_t offset, count;
};

struct Batch {
  Mirrored<float> images;         // [batch, channels, height, width]
  Mirrored<std::uint8_t> labels;  // [batch]
  // A step on this batch: recordings of successive operations, and between them the operations that
  // depend on the step. Empty until the first step is recorded.
  std::vector<std::function<void()>> recorded;
};

// The operations point to the members, so a NetworkParts is not copied or moved.
struct NetworkParts {
  explicit NetworkParts(Place place) : memory(place) {}
  NetworkParts(const NetworkParts&) = delete;
  NetworkParts& operator=(const NetworkParts&) = delete;

  // The operations compute with this batch from now on.
  void use(Batch& batch) {
    current = &batch;
    activations.front() = batch.images.here;
  }

  Memory memory;
  double operand_error = 0;         // TrainableNetwork::operand_error()
  std::vector<Batch> batches;       // two on a device: one is filled while the other is used
  Batch* current = nullptr;         // of batches
  std::vector<float*> activations;  // [layer + 1]: the images, then each layer's output
  Mirrored<float> probabilities;    // [batch, classes], the last activations
  Mirrored<float> loss;             // [batch]
  std::vector<float*> activation_gradients;  // [layer + 1]; null for an input without a gradient
  Mirrored<float> parameters, gradients;
  Mirrored<float> state1, state2;  // of the optimizer, for each parameter
  // The shared memory that the gradients live in; null with one rank, with ranks on several hosts,
  // and on a device.
  std::shared_ptr<const all_reduce::Window> window;
  std::vector<ParameterRange> parameter_list;
  // The parameters of each operation of the update: [first, second) of all.
  std::vector<std::pair<std::size_t, std::size_t>> updates;

  // Copies of the batch, if any; forward, backward, all-reduce, update.
  std::vector<Operation> operations;
  std::size_t batch_copies = 0;  // the number of these copies
  // The forward operations without dropout.
  std::vector<std::function<void()>> evaluation;

  // The operations read these when they run.
  double learning_rate = 0;
  std::int64_t step = 1;  // for the masks of dropout and Adam's bias correction
};

}  // namespace stepladder

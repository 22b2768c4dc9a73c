#include "harness/execution/tensors.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "harness/problem/random.hpp"
#include "harness/ranks/mpi_session.hpp"
#ifdef STEPLADDER_HAVE_MPI
#include "kernels/all_reduce/mpi/window.hpp"
#include "kernels/common/mpi.hpp"
#endif
#include "kernels/common/integer_math.hpp"

namespace stepladder {
namespace {

using network::is;

bool decays(const network::LayerDescription& layer,
            const network::OptimizerDescription& optimizer) {
  using Which = network::OptimizerDescription::DecayedWeights;
  if (optimizer.weight_decay == 0) return false;
  switch (optimizer.weight_decay_on) {
    case Which::all:
      return true;
    case Which::fully_connected:
      return is<network::FullyConnected>(layer);
    case Which::convolution:
      return is<network::Convolution>(layer);
  }
  return false;
}

// A normally distributed number, by the Box-Muller transform.
float normal(Random& random, double deviation) {
  const double u = 1.0 - double{random.uniform(0.0F, 1.0F)}, v = random.uniform(0.0F, 1.0F);
  return static_cast<float>(deviation * std::sqrt(-2 * std::log(u)) *
                            std::cos(2 * std::numbers::pi * v));
}

void allocate_activations(const network::NetworkDescription& description, const LayerList& layers,
                          const NetworkOptions& options, NetworkTensors& tensors,
                          NetworkParts& parts) {
  Memory& memory = parts.memory;
  const auto batch = static_cast<std::size_t>(description.batch);
  const auto inputs = batch * static_cast<std::size_t>(description.input.features());
  parts.batches.resize(memory.place() == Place::cuda ? 2 : 1);
  for (Batch& one : parts.batches)
    one = {memory.mirrored<float>(inputs), memory.mirrored<std::uint8_t>(batch), {}};
  parts.activations = {nullptr};
  parts.use(parts.batches.front());
  // Softmax always writes the gradient of its input.
  const auto feeds_softmax = [&](std::size_t next) {
    return next < layers.size() && is<network::SoftmaxCrossEntropy>(layers[next]);
  };
  const bool has_gradient = options.input_gradient || feeds_softmax(0);
  parts.activation_gradients = {has_gradient ? memory.array<float>(inputs) : nullptr};
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const bool in_place = works_in_place(layers, i), last = i + 1 == layers.size();
    const auto count = batch * static_cast<std::size_t>(layers[i].output.features());
    if (last) parts.probabilities = memory.mirrored<float>(count);
    parts.activations.push_back(in_place ? parts.activations.back()
                                : last   ? parts.probabilities.here
                                         : memory.array<float>(count));
    parts.activation_gradients.push_back(options.inference && !feeds_softmax(i + 1) ? nullptr
                                         : in_place && !options.inference
                                             ? parts.activation_gradients.back()
                                             : memory.array<float>(count));
    tensors.argmax.push_back(is<network::MaxPool>(layers[i]) ? memory.array<std::uint8_t>(count)
                                                             : nullptr);
  }
  parts.loss = memory.mirrored<float>(batch);
}

// Ranks of one host keep their gradients in shared memory, where an all-reduce needs no messages.
Mirrored<float> allocate_gradients(std::size_t count,
                                   [[maybe_unused]] const NetworkOptions& options,
                                   NetworkParts& parts) {
#ifdef STEPLADDER_HAVE_MPI
  const MpiSession& mpi = mpi_session();
  if (options.shared_gradients && mpi.ranks() > 1 && mpi.hosts() == 1 &&
      parts.memory.place() == Place::cpu) {
    const MPI_Comm communicator = communicator_of({.communicator = mpi.communicator()});
    const RankWatch::Call call = mpi.watch("the allocation of shared memory");
    parts.window = std::make_shared<all_reduce::Window>(communicator, count * sizeof(float));
    auto* gradients = reinterpret_cast<float*>(parts.window->segment());
    return {gradients, {gradients, count}};
  }
#endif
  return parts.memory.mirrored<float>(count);
}

// All parameters are in one array, so that one update serves the whole network: first the weights
// that decay, then the other weights and the biases, each from the last layer to the first, as
// backward() computes their gradients. The gaps between them stay 0.
void allocate_parameters(const network::OptimizerDescription& optimizer, const LayerList& layers,
                         const NetworkOptions& options, NetworkTensors& tensors,
                         NetworkParts& parts) {
  tensors.weights_at.resize(layers.size());
  tensors.biases_at.resize(layers.size());
  std::size_t end = 0;
  const auto place = [&](const network::LayerDescription& layer, const char* what,
                         std::int64_t count, std::size_t& at) {
    constexpr std::size_t vector = 4;  // floats; the alignment of vector loads and of the TMA
    at = end = round_up(end, vector);
    if (count == 0) return;
    parts.parameter_list.push_back({layer.name + "." + what, end, static_cast<std::size_t>(count)});
    end += static_cast<std::size_t>(count);
  };
  for (std::size_t i = layers.size(); i-- > 0;)
    if (decays(layers[i], optimizer))
      place(layers[i], "weights", layers[i].weights(), tensors.weights_at[i]);
  tensors.decayed = end;
  for (std::size_t i = layers.size(); i-- > 0;) {
    if (!decays(layers[i], optimizer))
      place(layers[i], "weights", layers[i].weights(), tensors.weights_at[i]);
    place(layers[i], "biases", layers[i].biases(), tensors.biases_at[i]);
  }
  if (!options.inference) parts.gradients = allocate_gradients(end, options, parts);
  if (const NetworkParts* other = options.parameters_of) {
    parts.parameters = other->parameters;
    parts.state1 = other->state1;
    parts.state2 = other->state2;
  } else {
    parts.parameters = parts.memory.mirrored<float>(end);
    if (options.inference) return;
    parts.state1 = parts.memory.mirrored<float>(end);
    parts.state2 = parts.memory.mirrored<float>(end);
  }
}

void draw_weights(const network::NetworkDescription& description, const LayerList& layers,
                  std::uint64_t seed, const NetworkTensors& tensors, NetworkParts& parts) {
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const double deviation = network::initial_deviation(description, i);
    Random random(seed, layers[i].name);
    const auto first = static_cast<std::ptrdiff_t>(tensors.weights_at[i]);
    std::generate_n(parts.parameters.host.begin() + first, layers[i].weights(),
                    [&] { return normal(random, deviation); });
  }
  parts.parameters.start_upload();
  parts.memory.wait();
}

}  // namespace

NetworkTensors allocate_tensors(const network::NetworkDescription& description,
                                const LayerList& layers, const NetworkOptions& options,
                                NetworkParts& parts) {
  NetworkTensors tensors;
  allocate_activations(description, layers, options, tensors, parts);
  allocate_parameters(description.optimizer, layers, options, tensors, parts);
  if (options.parameters_of == nullptr)
    draw_weights(description, layers, options.seed, tensors, parts);
  return tensors;
}

bool works_in_place(const LayerList& layers, std::size_t index) {
  if (index == 0) return false;
  const auto &layer = layers[index], &before = layers[index - 1];
  return (is<network::Relu>(layer) || is<network::Sigmoid>(layer) || is<network::Tanh>(layer) ||
          is<network::Dropout>(layer)) &&
         (is<network::FullyConnected>(before) || is<network::Convolution>(before) ||
          is<network::MaxPool>(before) || is<network::AveragePool>(before));
}

}  // namespace stepladder

// Allocates the tensors of a network and draws its initial weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "harness/execution/options.hpp"
#include "harness/execution/parts.hpp"
#include "harness/network/description.hpp"

namespace stepladder {

using LayerList = std::vector<network::LayerDescription>;  // in the order in which they run

// The tensors that only the plans use, all in the memory that the plans work in.
struct NetworkTensors {
  std::vector<std::uint8_t*> argmax;               // [layer], of max_pool layers
  std::vector<std::size_t> weights_at, biases_at;  // [layer], offsets into the parameters
  std::size_t decayed = 0;  // parameters [0, decayed) decay, the others do not
};

// Allocates activations, parameters and gradients in parts.memory and draws the weights from the
// seed, or takes the parameters of another network.
NetworkTensors allocate_tensors(const network::NetworkDescription& description,
                                const LayerList& layers, const NetworkOptions& options,
                                NetworkParts& parts);

// Whether layer `index` overwrites its input: an element of y depends on the same element of x
// only, its gradient is computed from y, and the layer before needs neither x nor y again.
bool works_in_place(const LayerList& layers, std::size_t index);

}  // namespace stepladder

// How a network is built and what a step of it does.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "harness/io/hash.hpp"

namespace stepladder {

struct NetworkParts;

// What a step does with the other ranks, if there are any: nothing, an all-reduce of the gradients
// before the update, or an update over ranks (sgd_update rungs with .over_ranks).
enum class Exchange { none, all_reduce, update };

struct NetworkOptions {
  int threads = 1;         // inside an operation
  int inter = 1;           // concurrent operations: 1 or 2 (input gradient and weight gradient)
  std::uint64_t seed = 1;  // of weights and dropout
  bool graph = true;       // on a device: a step is recorded once and launched as a whole
  Exchange exchange = Exchange::all_reduce;
  // Whether ranks of one host keep their gradients in shared memory. Collective over all ranks.
  bool shared_gradients = true;
  // Whether this rank chooses its rungs by itself, because other ranks build other networks.
  bool alone = false;
  // On the CPU: a network of the same layers, whose parameters and optimizer state this one uses
  // instead of its own. It must outlive this one.
  const NetworkParts* parameters_of = nullptr;
  int replica = 0;              // replicas of one training draw other dropout masks
  int update_threads = 0;       // threads of the update; 0: as many as of the other operations
  bool input_gradient = false;  // whether backward() computes the gradient of the input
  bool alternatives = false;    // whether operations keep rungs that are nearly as fast
  // On the CPU: the forward pass alone, without dropout, for evaluate(). There are no gradients,
  // and prepacked rungs pack the weights once.
  bool inference = false;
};

// Of the masks of a layer, which do not depend on the other layers of the network or part.
inline std::uint64_t dropout_seed(std::uint64_t seed, std::string_view layer, int replica) {
  return fnv1a(std::as_bytes(std::span(layer)),
               seed + 1'000'003 * static_cast<std::uint64_t>(replica));
}

}  // namespace stepladder

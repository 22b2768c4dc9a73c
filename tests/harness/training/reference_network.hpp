// The reference for TrainableNetwork: the forward pass in double precision, with textbook loops.
// Central differences of it give the gradients.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "harness/execution/network.hpp"

namespace stepladder {

using Doubles = std::vector<double>;

class ReferenceNetwork {
 public:
  // With the parameter layout and the dropout masks of `network`.
  ReferenceNetwork(const TrainableNetwork& network, std::uint64_t seed);

  // Mean cross entropy of the batch in the network's `step`th step, from 1, with dropout; images
  // and labels are the network's own.
  double loss(std::span<const double> parameters, std::int64_t step) const;

  // The smallest distance of an activation to a kink of the loss, as a fraction of the largest
  // magnitude at the input of its layer: |x| for relu, the largest minus the second largest of a
  // window for max_pool. Exact zeros and exact ties are left out: they come from relu and dropout,
  // which pass no gradient there. At least 1 if there is no kink.
  double kink_margin(std::span<const double> parameters, std::int64_t step) const;

 private:
  struct Offsets {  // into the parameters
    std::size_t weights = 0, biases = 0;
  };
  Doubles layer_output(std::size_t layer, const Doubles& x, std::span<const double> parameters,
                       std::int64_t step) const;

  network::NetworkDescription description_;
  std::uint64_t seed_;
  std::vector<Offsets> offsets_;  // [layer]
  Doubles images_;
  std::vector<std::uint8_t> labels_;
};

}  // namespace stepladder

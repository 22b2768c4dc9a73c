// A network in double precision and textbook loops, from its description alone: the truth that the
// plans of a TrainableNetwork have to add up to. Forward only; gradients are its central
// differences.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "harness/training/network.hpp"

namespace stepladder {

using Doubles = std::vector<double>;

class ReferenceNetwork {
 public:
  // The parameters stand where those of `network` do, and dropout drops what it drops.
  ReferenceNetwork(const TrainableNetwork& network, std::uint64_t seed);

  // Mean cross entropy of the batch in the network's `step`th step, from 1, with dropout; images
  // and labels are the network's own.
  double loss(std::span<const double> parameters, std::int64_t step) const;

 private:
  struct Place {
    std::size_t weights = 0, biases = 0;  // offsets into the parameters
  };
  Doubles layer_output(std::size_t layer, const Doubles& x, std::span<const double> parameters,
                       std::int64_t step) const;

  network::NetworkDescription description_;
  std::uint64_t seed_;
  std::vector<Place> places_;  // [layer]
  Doubles images_;
  std::vector<std::uint8_t> labels_;
};

}  // namespace stepladder

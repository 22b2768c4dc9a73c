// What a network should compute, from the fp64 references of its layers.
#pragma once

#include <span>
#include <vector>

#include "harness/execution/network.hpp"

namespace stepladder {

// Of each image: the input of the last layer, and the probabilities. [images, classes]
struct Outputs {
  std::vector<double> logits, probabilities;
};

// Every layer in fp64, without dropout; between layers activations are rounded to fp32, a relative
// error of 2^-24. `network`: of inference; images: [count, channels, height, width], any count.
Outputs reference_outputs(TrainableNetwork& network, std::span<const float> images);

// The largest error of the network's last evaluation, in units of what it may be: a logit may
// differ by output_bound() times the largest logit of the reference, a probability by
// output_bound(). Above 1: wrong; infinite if an output is NaN. The reference is of the network's
// images, or of more that begin with them.
double output_bound(const TrainableNetwork& network);  // 1e-4, or its operand_error() if larger
double output_error(const TrainableNetwork& network, const Outputs& reference);

}  // namespace stepladder

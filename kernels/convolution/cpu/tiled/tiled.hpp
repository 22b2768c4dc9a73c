// What the vectorised variants share: all directions, on the register tile of one ISA.
#pragma once

#include <memory>

#include "kernels/convolution/cpu/tiled/correlation.hpp"
#include "kernels/convolution/cpu/steps.hpp"
#include "kernels/convolution/cpu/tiled/backward_weights.hpp"

namespace stepladder::convolution::inline STEPLADDER_ISA {

// The workspace of all threads is allocated here.
inline std::unique_ptr<Steps> make_steps(const Problem& problem, int threads) {
  if (problem.direction == Direction::backward_weights)
    return std::make_unique<WeightGradient>(problem, threads);
  return std::make_unique<Correlation>(problem, threads);
}

}  // namespace stepladder::convolution::inline STEPLADDER_ISA

// The convolution of the rungs simd, openmp and pthread, in all directions.
#pragma once

#include <memory>

#include "kernels/convolution/cpu/threaded_convolution.hpp"
#include "kernels/convolution/cpu/tiled/backward_weights.hpp"
#include "kernels/convolution/cpu/tiled/correlation.hpp"

namespace stepladder::convolution::inline STEPLADDER_ISA {

// Allocates the workspaces of all threads.
inline std::unique_ptr<ThreadedConvolution> make_tiled(const Problem& problem, int threads) {
  if (problem.direction == Direction::backward_weights)
    return std::make_unique<TiledBackwardWeights>(problem, threads);
  return std::make_unique<TiledCorrelation>(problem, threads);
}

}  // namespace stepladder::convolution::inline STEPLADDER_ISA

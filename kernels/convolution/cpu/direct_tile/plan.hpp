// The plan of direct_tile and direct_tile_bf16.
#pragma once

#include "kernels/common/cpu/simd.hpp"
#include "kernels/convolution/cpu/direct_tile/backward_weights.hpp"
#include "kernels/convolution/cpu/direct_tile/correlation.hpp"
#include "kernels/convolution/cpu/openmp_plan.hpp"

namespace stepladder::convolution::inline STEPLADDER_ISA {

template <class Elements>
std::unique_ptr<Plan> direct_tile_plan(const Problem& problem, const Resources& resources) {
  const int threads = resources.threads;
  std::unique_ptr<ThreadedConvolution> convolution;
  if (problem.direction == Direction::backward_weights)
    convolution = std::make_unique<DirectTileBackwardWeights<Elements>>(problem, threads);
  else
    convolution = std::make_unique<DirectTileCorrelation<Elements>>(problem, threads);
  return std::make_unique<OpenMpPlan>(std::move(convolution), threads);
}

}  // namespace stepladder::convolution::inline STEPLADDER_ISA

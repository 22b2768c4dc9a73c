// The convolution of the rungs simd, openmp and pthread…, in all directions.
#pragma once

#include <memory>

#include "kernels/common/isa.hpp"
#include "kernels/convolution/cpu/threaded_convolution.hpp"

namespace stepladder::convolution::inline STEPLADDER_ISA {

// Allocates the workspaces of all threads. Defined in simd.cpp.
std::unique_ptr<ThreadedConvolution> make_tiled(const Problem& problem, int threads);

}  // namespace stepladder::convolution::inline STEPLADDER_ISA

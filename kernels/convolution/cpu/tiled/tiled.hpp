// The convolution of the rungs packed, openmp and pthread…, in all directions.
#pragma once

#include <memory>

#include "kernels/common/isa.hpp"
#include "kernels/convolution/cpu/threaded_convolution.hpp"

namespace stepladder::convolution::inline STEPLADDER_ISA {

// Allocates the workspaces of all threads. Defined in packed.cpp.
std::unique_ptr<ThreadedConvolution> make_tiled(const Problem& problem, int threads);

}  // namespace stepladder::convolution::inline STEPLADDER_ISA

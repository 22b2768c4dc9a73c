// The epilogue as a pass of its own over C, after a product that does not fuse it.
#pragma once

#include "kernels/matmul/matmul.hpp"

namespace stepladder::matmul {

// C += bias, or C = max(0, C + bias), as the problem asks; nothing without an epilogue.
void separate_epilogue(const Problem& problem, const Operands& operands, int threads);

}  // namespace stepladder::matmul

// The epilogue as a separate pass over C, for products that do not fuse it.
#pragma once

#include "kernels/matmul/matmul.hpp"

namespace stepladder::matmul {

// C += bias, or C = max(0, C + bias), by problem.epilogue; nothing for Epilogue::none.
void separate_epilogue(const Problem& problem, const Operands& operands, int threads);

}  // namespace stepladder::matmul

#include "kernels/matmul/cpu/separate_epilogue.hpp"

#include <limits>

#include "kernels/common/cpu/instructions.hpp"

namespace stepladder::matmul {
namespace {

// One row of C: max(c + bias, lowest). GCC compiles it for each ISA and dispatches at run time.
STEPLADDER_CLONES void add_bias(float* c, const float* bias, std::int64_t n, float lowest) {
  for (std::int64_t j = 0; j < n; ++j) {
    const float sum = c[j] + bias[j];
    c[j] = sum < lowest ? lowest : sum;
  }
}

}  // namespace

void separate_epilogue(const Problem& p, const Operands& o, int threads) {
  if (p.epilogue == Epilogue::none) return;
  const float lowest =
      p.epilogue == Epilogue::bias_relu ? 0.0F : -std::numeric_limits<float>::infinity();
  constexpr std::int64_t parallel_threshold = 1
                                              << 14;  // elements; they take a fork and join's time
#pragma omp parallel for num_threads(threads) if (p.m * p.n > parallel_threshold) schedule(static)
  for (std::int64_t i = 0; i < p.m; ++i) add_bias(o.c + i * p.n, o.bias, p.n, lowest);
}

}  // namespace stepladder::matmul

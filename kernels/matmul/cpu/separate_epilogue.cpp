#include "kernels/matmul/cpu/separate_epilogue.hpp"

#include <limits>

namespace stepladder::matmul {
namespace {

// One row of C. The compiler makes a copy of it for each width of vector and the machine's is called.
__attribute__((target_clones("avx512f", "avx2", "default"))) void finish_row(float* c,
                                                                             const float* bias,
                                                                             std::int64_t n,
                                                                             float lowest) {
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
  constexpr std::int64_t worth_a_thread = 1 << 14;  // elements: a fork and join takes as long
#pragma omp parallel for num_threads(threads) if (p.m * p.n > worth_a_thread) schedule(static)
  for (std::int64_t i = 0; i < p.m; ++i) finish_row(o.c + i * p.n, o.bias, p.n, lowest);
}

}  // namespace stepladder::matmul

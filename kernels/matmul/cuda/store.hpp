// Stores accumulators to C, within its edges, alone or 2 or 4 adjacent ones of a row, with a fused
// epilogue. A separate epilogue would read and write C once more, which takes 4 peak / (k
// bandwidth) of the product's time: 460 / k with the 495 TFLOP/s of TF32 and the 4.3 TB/s of an
// H200, 62 / k with its 67 TFLOP/s of fp32. Only .cu files include this.
#pragma once

#include "kernels/common/cuda/launch.hpp"
#include "kernels/matmul/matmul.hpp"

namespace stepladder::matmul {

// The value of element `at` of C, in column j < n, with the accumulator `sum`.
__device__ inline float apply_epilogue(const Problem& p, const Operands& o, std::int64_t j,
                                       std::int64_t at, float sum) {
  if (p.epilogue == Epilogue::none) return sum;
  const bool is_gradient = p.epilogue == Epilogue::relu_gradient;
  const float other = *(is_gradient ? o.y + at : o.bias + j);
  if (is_gradient) return other > 0 ? sum : 0;
  sum += other;
  return p.epilogue == Epilogue::bias_relu && sum < 0 ? 0 : sum;
}

__device__ inline void store(const Problem& p, const Operands& o, std::int64_t i, std::int64_t j,
                             float sum) {
  if (i >= p.m || j >= p.n) return;
  const std::int64_t at = i * p.n + j;
  o.c[at] = apply_epilogue(p, o, j, at, sum);
}

// Stores 2 or 4 accumulators; j is a multiple of `count`. With `vectors`, C must allow them
// (allows_vectors()).
template <int count, bool vectors>
__device__ void store_contiguous(const Problem& p, const Operands& o, std::int64_t i,
                                 std::int64_t j, const float* values) {
  static_assert(count == 2 || count == 4);
  if (i >= p.m || j >= p.n) return;
  const std::int64_t at = i * p.n + j;
  const auto value = [&](int v) { return apply_epilogue(p, o, j + v, at + v, values[v]); };
  float* const to = o.c + at;
  if constexpr (vectors) {
    if constexpr (count == 4)
      *reinterpret_cast<float4*>(to) = make_float4(value(0), value(1), value(2), value(3));
    else
      *reinterpret_cast<float2*>(to) = make_float2(value(0), value(1));
  } else {
#pragma unroll
    for (int v = 0; v < count; ++v)
      if (j + v < p.n) to[v] = value(v);
  }
}

}  // namespace stepladder::matmul

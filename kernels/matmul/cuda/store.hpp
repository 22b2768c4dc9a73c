// Where sums become C: within its edges, alone or four neighbours of a row at once, and with the
// epilogue while they are still in registers. A pass of its own would read and write C once more,
// which takes 4 peak / (k bandwidth) of the product's time: with the 495 TFLOP/s of TF32 and 4.3 TB/s
// of an H200 460 / k, with the 67 of fp32 62 / k. Only .cu files include this.
#pragma once

#include "kernels/common/cuda/launch.hpp"
#include "kernels/matmul/matmul.hpp"

namespace stepladder::matmul {

// A sum of column j < n as element `at` of C gets it.
__device__ inline float finish(const Problem& p, const Operands& o, std::int64_t j, std::int64_t at,
                               float sum) {
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
  o.c[at] = finish(p, o, j, at, sum);
}

// 2 or 4 sums; `vectors` says that C's rows are in_vectors; j is a multiple of `count`.
template <int count, bool vectors>
__device__ void store_neighbours(const Problem& p, const Operands& o, std::int64_t i,
                                 std::int64_t j, const float* sums) {
  static_assert(count == 2 || count == 4);
  if (i >= p.m || j >= p.n) return;
  const std::int64_t at = i * p.n + j;
  const auto finished = [&](int v) { return finish(p, o, j + v, at + v, sums[v]); };
  float* const to = o.c + at;
  if constexpr (vectors) {
    if constexpr (count == 4)
      *reinterpret_cast<float4*>(to) =
          make_float4(finished(0), finished(1), finished(2), finished(3));
    else
      *reinterpret_cast<float2*>(to) = make_float2(finished(0), finished(1));
  } else {
#pragma unroll
    for (int v = 0; v < count; ++v)
      if (j + v < p.n) to[v] = finished(v);
  }
}

}  // namespace stepladder::matmul

// op(A) and op(B) as the CUDA kernels read them. x is the index that an operand shares with C (a
// row of op(A), a column of op(B)), l the index along K. An operand is a matrix of extent x K in
// one of two layouts:
//
//     K-contiguous             [extent, k]   A, or B transposed: neighbours in memory differ in l
//     M- or N-contiguous       [k, extent]   A transposed, or B: neighbours in memory differ in x
#pragma once

#include <cstdint>

#include "kernels/common/host_device.hpp"
#include "kernels/matmul/matmul.hpp"

namespace stepladder::matmul {

struct Operand {
  const float* data;
  std::int64_t extent, k;  // extent: M for A, N for B
  bool k_contiguous;

  STEPLADDER_HOST_DEVICE std::int64_t leading_dimension() const {
    return k_contiguous ? k : extent;
  }
  STEPLADDER_HOST_DEVICE const float* address(std::int64_t x, std::int64_t l) const {
    return data + (k_contiguous ? x * k + l : l * extent + x);
  }
  STEPLADDER_HOST_DEVICE bool holds(std::int64_t x, std::int64_t l) const {
    return x < extent && l < k;
  }
  // Zeros pad the tiles at the edges.
  STEPLADDER_HOST_DEVICE float element_or_zero(std::int64_t x, std::int64_t l) const {
    return holds(x, l) ? *address(x, l) : 0;
  }
};

STEPLADDER_HOST_DEVICE inline Operand operand_a(const Problem& p, const Operands& o) {
  return {o.a, p.m, p.k, !p.transpose_a};
}
STEPLADDER_HOST_DEVICE inline Operand operand_b(const Problem& p, const Operands& o) {
  return {o.b, p.n, p.k, p.transpose_b};
}

// Whether every row starts at a multiple of 16 bytes, so that it can be accessed as float4.
inline bool allows_vectors(const float* matrix, std::int64_t leading_dimension) {
  return leading_dimension % 4 == 0 && reinterpret_cast<std::uintptr_t>(matrix) % 16 == 0;
}
inline bool allows_vectors(const Operand& operand) {
  return allows_vectors(operand.data, operand.leading_dimension());
}
inline bool allows_vectors(const Problem& p, const Operands& o) {
  return allows_vectors(operand_a(p, o)) && allows_vectors(operand_b(p, o)) &&
         allows_vectors(o.c, p.n);
}

// dispatch(call, x, y) calls call<x, y>(): run-time conditions become template arguments.
template <bool... conditions, class Call>
void dispatch(const Call& call) {
  call.template operator()<conditions...>();
}
template <bool... conditions, class Call, class... Rest>
void dispatch(const Call& call, bool next, Rest... rest) {
  if (next)
    dispatch<conditions..., true>(call, rest...);
  else
    dispatch<conditions..., false>(call, rest...);
}

}  // namespace stepladder::matmul

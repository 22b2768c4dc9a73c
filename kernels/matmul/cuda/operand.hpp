// The two factors of a product as the CUDA rungs read them. With x the index of C that a factor
// shares (a row of op(A), a column of op(B)) and l the index that is summed, each factor is a
// matrix of `extent` x and `depth` l, and lies in memory in one of two ways:
//
//     along_depth    [extent, depth]   A as it is, B transposed: neighbours in memory differ in l
//     otherwise      [depth, extent]   A transposed, B as it is: neighbours in memory differ in x
#pragma once

#include <cstdint>

#include "kernels/common/host_device.hpp"
#include "kernels/matmul/matmul.hpp"

namespace stepladder::matmul {

struct Factor {
  const float* at;
  std::int64_t extent, depth;
  bool along_depth;

  STEPLADDER_HOST_DEVICE std::int64_t row() const { return along_depth ? depth : extent; }
  STEPLADDER_HOST_DEVICE const float* address(std::int64_t x, std::int64_t l) const {
    return at + (along_depth ? x * depth + l : l * extent + x);
  }
  STEPLADDER_HOST_DEVICE bool holds(std::int64_t x, std::int64_t l) const {
    return x < extent && l < depth;
  }
  // Tiles reach past the edges, where zeros add nothing to a sum.
  STEPLADDER_HOST_DEVICE float element_or_zero(std::int64_t x, std::int64_t l) const {
    return holds(x, l) ? *address(x, l) : 0;
  }
};

STEPLADDER_HOST_DEVICE inline Factor factor_a(const Problem& p, const Operands& o) {
  return {o.a, p.m, p.k, !p.transpose_a};
}
STEPLADDER_HOST_DEVICE inline Factor factor_b(const Problem& p, const Operands& o) {
  return {o.b, p.n, p.k, p.transpose_b};
}

// Whether each row of a matrix can be read and written in vectors of four floats, from its start.
inline bool in_vectors(const float* matrix, std::int64_t row) {
  return row % 4 == 0 && reinterpret_cast<std::uintptr_t>(matrix) % 16 == 0;
}
inline bool in_vectors(const Factor& factor) { return in_vectors(factor.at, factor.row()); }
inline bool in_vectors(const Problem& p, const Operands& o) {
  return in_vectors(factor_a(p, o)) && in_vectors(factor_b(p, o)) && in_vectors(o.c, p.n);
}

// Calls call<…>() with the choices as constants, so that one kernel is compiled for each.
template <bool... chosen, class Call>
void choose(const Call& call) {
  call.template operator()<chosen...>();
}
template <bool... chosen, class Call, class... Choices>
void choose(const Call& call, bool next, Choices... choices) {
  if (next)
    choose<chosen..., true>(call, choices...);
  else
    choose<chosen..., false>(call, choices...);
}

}  // namespace stepladder::matmul

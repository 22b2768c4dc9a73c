// The epilogue of a fused product: max(lowest, acc + bias), where lowest is 0 with ReLU and minus
// infinity without. The bias is of columns, or of rows in a tile of Cᵀ. Both are added, one of them
// zeros: a tile is compiled once, with one addition more for each vector that it stores.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernels/common/cpu/gemm_tile.hpp"

namespace stepladder::matmul::inline STEPLADDER_ISA {

struct BiasRelu {
  static constexpr std::int64_t most = std::max<std::int64_t>(
      GemmTile<>::rows * GemmTile<>::vectors, GemmTile<>::columns);  // rows or columns of a tile
  alignas(64) static constexpr float zeros[most] = {};

  const float *column_bias = zeros, *row_bias = zeros;  // both: the sums are not finished
  float lowest = -std::numeric_limits<float>::infinity();

  Vector operator()(Vector acc, std::int64_t row, std::int64_t column, std::int64_t count) const {
    const Vector bias = count == std::int64_t{Vector::size}
                            ? Vector::load_unaligned(column_bias + column)
                            : load_partial(column_bias + column, count);
    return xsimd::max(Vector(lowest), acc + Vector(row_bias[row]) + bias);
  }
};

}  // namespace stepladder::matmul::inline STEPLADDER_ISA

// Epilogues of a register tile (kernels/common/cpu/gemm_tile.hpp): max(lowest, acc + bias), where
// lowest is 0 with ReLU and minus infinity without.
#pragma once

#include <cstdint>
#include <limits>

#include "kernels/common/cpu/gemm_tile.hpp"

namespace stepladder::matmul::inline STEPLADDER_ISA {

template <class Vector>
Vector lowest(bool relu) {
  return Vector(relu ? 0.0F : -std::numeric_limits<float>::infinity());
}

// bias [columns of the tile]
class ColumnBias {
 public:
  ColumnBias(const float* bias, bool relu) : bias_(bias), lowest_(lowest<Vector>(relu)) {}
  Vector operator()(Vector acc, std::int64_t, std::int64_t column, std::int64_t count) const {
    const Vector bias = count == std::int64_t{Vector::size} ? Vector::load_unaligned(bias_ + column)
                                                            : load_partial(bias_ + column, count);
    return xsimd::max(lowest_, acc + bias);
  }

 private:
  const float* bias_;
  Vector lowest_;
};

// bias [rows of the tile], for a tile of Cᵀ
class RowBias {
 public:
  RowBias(const float* bias, bool relu) : bias_(bias), lowest_(lowest<Vector>(relu)) {}
  Vector operator()(Vector acc, std::int64_t row, std::int64_t, std::int64_t) const {
    return xsimd::max(lowest_, acc + Vector(bias_[row]));
  }

 private:
  const float* bias_;
  Vector lowest_;
};

// One of them, or none: the tiles of all sizes are compiled once for the three, which differ where
// they store.
struct FusedEpilogue {
  const float *column_bias = nullptr, *row_bias = nullptr;  // both null: the sums are not finished
  bool relu = false;

  template <class Store>
  [[gnu::always_inline]] void choose(const Store& store) const {
    if (column_bias != nullptr)
      store(ColumnBias(column_bias, relu));
    else if (row_bias != nullptr)
      store(RowBias(row_bias, relu));
    else
      store(IdentityEpilogue{});
  }
};

}  // namespace stepladder::matmul::inline STEPLADDER_ISA

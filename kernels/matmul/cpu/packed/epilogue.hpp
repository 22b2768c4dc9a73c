// How a fused rung finishes a tile of C before it is stored: the bias is added and, for ReLU, what is
// below 0 becomes 0. Without ReLU the same is done with the lowest number there is, minus infinity.
#pragma once

#include <limits>

#include "kernels/common/cpu/gemm_tile.hpp"

namespace stepladder::matmul::inline STEPLADDER_ISA {

template <class Vector>
Vector lowest(bool relu) {
  return Vector(relu ? 0.0F : -std::numeric_limits<float>::infinity());
}

// bias [tile's columns]: one for each column of the tile.
class ColumnBias {
 public:
  ColumnBias(const float* bias, bool relu) : bias_(bias), lowest_(lowest<Vector>(relu)) {}
  Vector operator()(Vector sum, std::int64_t, std::int64_t column, std::int64_t count) const {
    const Vector bias = count == std::int64_t{Vector::size}
                            ? Vector::load_unaligned(bias_ + column)
                            : load_partial(bias_ + column, count);
    return xsimd::max(lowest_, sum + bias);
  }

 private:
  const float* bias_;
  Vector lowest_;
};

// bias [tile's rows]: one for each row, of a tile of Cᵀ.
class RowBias {
 public:
  RowBias(const float* bias, bool relu) : bias_(bias), lowest_(lowest<Vector>(relu)) {}
  Vector operator()(Vector sum, std::int64_t row, std::int64_t, std::int64_t) const {
    return xsimd::max(lowest_, sum + Vector(bias_[row]));
  }

 private:
  const float* bias_;
  Vector lowest_;
};

}  // namespace stepladder::matmul::inline STEPLADDER_ISA

// The tensor maps of an operand, by address. Each is encoded once, because the driver's work would
// otherwise be part of every run. Only .cu files include this.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "kernels/common/cuda/tma.hpp"

namespace stepladder {

class TensorMapCache {
 public:
  // The map of the matrix at this address; encode() makes it if it is not here. All matrices have
  // the same shape and boxes.
  template <class Encode>
  const TensorMap& get(const float* matrix, const Encode& encode) {
    const auto end = matrices_.begin() + std::min(encoded_, most);
    const auto found = std::find(matrices_.begin(), end, matrix);
    if (found != end) return maps_[found - matrices_.begin()];
    const std::size_t oldest = encoded_ % most;
    maps_[oldest] = encode();
    matrices_[oldest] = matrix;
    ++encoded_;
    return maps_[oldest];
  }

 private:
  // Cold operands of 1.6 MB or more have no more copies in twice the 50 MB of Hopper's L2.
  static constexpr std::size_t most = 64;
  std::size_t encoded_ = 0;
  std::array<const float*, most> matrices_{};
  std::array<TensorMap, most> maps_{};
};

}  // namespace stepladder

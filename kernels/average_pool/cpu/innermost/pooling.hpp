// Average pooling where a plane is not innermost (kernels/common/cpu/innermost_pooling.hpp).
//
//   forward    y = (sum of x of the positions inside the plane) · 1 / divisor
//   backward   dx of each of these positions += dy · 1 / divisor
#pragma once

#include <algorithm>

#include "kernels/average_pool/average_pool.hpp"
#include "kernels/common/cpu/innermost_pooling.hpp"

namespace stepladder::average_pool::inline STEPLADDER_ISA {

struct MeanOfWindow {
  static constexpr std::int64_t lanes = Vector::size;

  static void forward(const Problem& p, const Operands& o, const float* plane,
                      const PoolingWindow& at, std::int64_t inner, std::int64_t result) {
    const Vector factor = one_over_divisor(p, at);
    for (std::int64_t l = 0; l < inner; l += lanes) {
      const std::int64_t count = std::min(lanes, inner - l);
      Vector sum(0.0F);
      for (std::int64_t r = at.rows.begin; r < at.rows.end; ++r)
        for (std::int64_t s = at.columns.begin; s < at.columns.end; ++s)
          sum += load_first(plane + ((at.top + r) * p.width + at.left + s) * inner + l, count);
      store_first(o.y + result + l, sum * factor, count);
    }
  }

  static void backward(const Problem& p, const Operands& o, float* plane, const PoolingWindow& at,
                       std::int64_t inner, std::int64_t result) {
    const Vector factor = one_over_divisor(p, at);
    for (std::int64_t l = 0; l < inner; l += lanes) {
      const std::int64_t count = std::min(lanes, inner - l);
      const Vector share = load_first(o.y + result + l, count) * factor;
      for (std::int64_t r = at.rows.begin; r < at.rows.end; ++r)
        for (std::int64_t s = at.columns.begin; s < at.columns.end; ++s) {
          float* dx = plane + ((at.top + r) * p.width + at.left + s) * inner + l;
          store_first(dx, load_first(dx, count) + share, count);
        }
    }
  }

 private:
  static Vector one_over_divisor(const Problem& p, const PoolingWindow& at) {
    const std::int64_t inside = (at.rows.end - at.rows.begin) * (at.columns.end - at.columns.begin);
    return Vector(1.0F / static_cast<float>(
                             p.count == Count::include_padding ? p.window_h * p.window_w : inside));
  }
};

using InnermostPooling = InnermostPlan<AveragePool, MeanOfWindow>;

}  // namespace stepladder::average_pool::inline STEPLADDER_ISA

// Average pooling where a plane is not innermost (kernels/common/cpu/innermost_pooling.hpp).
//
//   forward    y = (sum of x of the positions inside the plane) · 1 / divisor
//   backward   dx of each of these positions += dy · 1 / divisor
#pragma once

#include "kernels/average_pool/average_pool.hpp"
#include "kernels/common/cpu/innermost_pooling.hpp"

namespace stepladder::average_pool::inline STEPLADDER_ISA {

struct MeanOfWindow {
  Vector factor;  // 1 / divisor

  MeanOfWindow(const Problem& p, const PoolingWindow& at) {
    const std::int64_t positions =
        p.count == Count::include_padding
            ? p.window_h * p.window_w
            : (at.rows.end - at.rows.begin) * (at.columns.end - at.columns.begin);
    factor = Vector(1.0F / static_cast<float>(positions));
  }

  static Vector start(const Vector&, const Vector&) { return Vector(0.0F); }
  static void add(Vector& sum, const Vector& x, const Vector&) { sum += x; }
  void store(const Operands& o, std::int64_t result, const Vector& sum, std::int64_t count) const {
    store_first(o.y + result, sum * factor, count);
  }

  Vector gradient(const Operands& o, std::int64_t result, std::int64_t count) const {
    return load_first(o.y + result, count) * factor;
  }
  static Vector part(const Vector& gradient, const Vector&) { return gradient; }
};

using InnermostPooling = InnermostPlan<AveragePool, MeanOfWindow>;

}  // namespace stepladder::average_pool::inline STEPLADDER_ISA

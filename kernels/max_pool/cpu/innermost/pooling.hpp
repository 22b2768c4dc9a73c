// Max pooling where a plane is not innermost (kernels/common/cpu/innermost_pooling.hpp).
//
//   forward    best = max(best, x of the position), for the positions inside the plane
//   backward   dx of the position += argmax is the position ? dy : 0
#pragma once

#include <algorithm>

#include "kernels/common/cpu/innermost_pooling.hpp"
#include "kernels/max_pool/cpu/simd/argmax.hpp"
#include "kernels/max_pool/max_pool.hpp"

namespace stepladder::max_pool::inline STEPLADDER_ISA {

struct LargestOfWindow {
  static constexpr std::int64_t lanes = Vector::size;

  static void forward(const Problem& p, const Operands& o, const float* plane,
                      const PoolingWindow& at, std::int64_t inner, std::int64_t result) {
    for (std::int64_t l = 0; l < inner; l += lanes) {
      const std::int64_t count = std::min(lanes, inner - l);
      const auto value = [&](std::int64_t r, std::int64_t s) {
        return load_first(plane + ((at.top + r) * p.width + at.left + s) * inner + l, count);
      };
      const auto position = [&](std::int64_t r, std::int64_t s) {
        return Vector(static_cast<float>(r * p.window_w + s));
      };
      Vector best = value(at.rows.begin, at.columns.begin);
      Vector best_position = position(at.rows.begin, at.columns.begin);
      for (std::int64_t r = at.rows.begin; r < at.rows.end; ++r)
        for (std::int64_t s = at.columns.begin; s < at.columns.end; ++s) {
          const Vector x = value(r, s);
          best_position = xsimd::select(x > best, position(r, s), best_position);
          best = xsimd::max(x, best);
        }
      store_first(o.y + result + l, best, count);
      store_argmax_within(o.argmax + result + l, best_position, count);
    }
  }

  static void backward(const Problem& p, const Operands& o, float* plane, const PoolingWindow& at,
                       std::int64_t inner, std::int64_t result) {
    for (std::int64_t l = 0; l < inner; l += lanes) {
      const std::int64_t count = std::min(lanes, inner - l);
      const Vector dy = load_first(o.y + result + l, count);
      const Vector largest = load_positions(o.argmax + result + l, count);
      for (std::int64_t r = at.rows.begin; r < at.rows.end; ++r)
        for (std::int64_t s = at.columns.begin; s < at.columns.end; ++s) {
          float* dx = plane + ((at.top + r) * p.width + at.left + s) * inner + l;
          const Vector position(static_cast<float>(r * p.window_w + s));
          store_first(dx, load_first(dx, count) + where(largest == position, dy), count);
        }
    }
  }

 private:
  static Vector load_positions(const std::uint8_t* p, std::int64_t count) {
    std::uint8_t bytes[lanes] = {};
    std::copy_n(p, count, bytes);
    return load_argmax(bytes, static_cast<Vector*>(nullptr));
  }
};

using InnermostPooling = InnermostPlan<MaxPool, LargestOfWindow>;

}  // namespace stepladder::max_pool::inline STEPLADDER_ISA

// Pooling where a plane is not innermost: x is [outer, height, width, inner], with lanes along
// `inner` (images in chwn, 16 channels in nchw16c). All lanes of a vector have the same window, so
// there are no shuffles, whatever the window, stride and padding. Threads share the planes.
//
// Reduction(problem, window) is what is done with a window, on vectors of lanes:
//
//   forward     running = start(x, position) of the first position; add(running, x, position) of
//               all, the first included; store(operands, index in y, running, count of lanes)
//   backward    gradient(operands, index in y, count of lanes); dx += part(gradient, position)
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/common/cpu/partial_vector.hpp"
#include "kernels/common/cpu/planes.hpp"
#include "kernels/common/cpu/simd.hpp"

namespace stepladder::inline STEPLADDER_ISA {

// A window, and which of its positions are inside the plane.
struct PoolingWindow {
  std::int64_t top, left;  // of its corner; may be in the padding
  Range rows, columns;     // relative to the corner
};

// The first `count` elements of a vector.
inline Vector load_first(const float* p, std::int64_t count) {
  return count == std::int64_t{Vector::size} ? Vector::load_unaligned(p) : load_partial(p, count);
}
inline void store_first(float* p, const Vector& v, std::int64_t count) {
  if (count == std::int64_t{Vector::size})
    v.store_unaligned(p);
  else
    store_partial(p, v, count);
}

template <class Primitive, class Reduction>
class InnermostPlan final : public PlanOf<Primitive> {
 public:
  using Problem = typename Primitive::Problem;
  using Operands = typename Primitive::Operands;

  InnermostPlan(const Problem& p, const Resources& resources)
      : p_(p),
        inner_(p.layout == Layout::chwn ? p.batch : block_channels),
        outer_(p.layout == Layout::chwn ? p.channels : p.planes() / block_channels),
        threads_(plane_threads(outer_, p.x_count(), resources.threads)) {}

  void run(const Operands& o) override {
    for_each_part(outer_, threads_, [&](const Range& planes, int) { pool(o, planes); });
  }

 private:
  static constexpr std::int64_t lanes = Vector::size;

  void pool(const Operands& o, const Range& planes) const {
    const std::int64_t in = p_.height * p_.width * inner_, out_h = p_.out_h(), out_w = p_.out_w();
    const bool is_forward = p_.direction == decltype(p_.direction)::forward;
    for (std::int64_t plane = planes.begin; plane < planes.end; ++plane) {
      float* x = o.x + plane * in;
      if (!is_forward) std::fill_n(x, in, 0.0F);
      for (std::int64_t i = 0; i < out_h; ++i)
        for (std::int64_t j = 0; j < out_w; ++j) {
          const std::int64_t top = i * p_.stride_h - p_.pad_h, left = j * p_.stride_w - p_.pad_w;
          const PoolingWindow at{top, left, inside(top, p_.window_h, p_.height),
                                 inside(left, p_.window_w, p_.width)};
          const std::int64_t result = ((plane * out_h + i) * out_w + j) * inner_;
          if (is_forward)
            forward(p_, o, x, at, inner_, result);
          else
            backward(p_, o, x, at, inner_, result);
        }
    }
  }

  // Calls visit(x of the position, its number) for the positions of the window inside the plane.
  template <class Visit>
  static void for_each_position(const Problem& p, float* plane, const PoolingWindow& at,
                                std::int64_t inner, const Visit& visit) {
    for (std::int64_t r = at.rows.begin; r < at.rows.end; ++r)
      for (std::int64_t s = at.columns.begin; s < at.columns.end; ++s)
        visit(plane + ((at.top + r) * p.width + at.left + s) * inner,
              Vector(static_cast<float>(r * p.window_w + s)));
  }

  static void forward(const Problem& p, const Operands& o, float* plane, const PoolingWindow& at,
                      std::int64_t inner, std::int64_t result) {
    const Reduction reduction(p, at);
    for (std::int64_t l = 0; l < inner; l += lanes) {
      const std::int64_t count = std::min(lanes, inner - l);
      const std::int64_t r = at.rows.begin, s = at.columns.begin;
      const float* first = plane + ((at.top + r) * p.width + at.left + s) * inner;
      auto running = reduction.start(load_first(first + l, count),
                                     Vector(static_cast<float>(r * p.window_w + s)));
      for_each_position(p, plane, at, inner, [&](const float* x, const Vector& position) {
        reduction.add(running, load_first(x + l, count), position);
      });
      reduction.store(o, result + l, running, count);
    }
  }

  static void backward(const Problem& p, const Operands& o, float* plane, const PoolingWindow& at,
                       std::int64_t inner, std::int64_t result) {
    const Reduction reduction(p, at);
    for (std::int64_t l = 0; l < inner; l += lanes) {
      const std::int64_t count = std::min(lanes, inner - l);
      const auto gradient = reduction.gradient(o, result + l, count);
      for_each_position(p, plane, at, inner, [&](float* dx, const Vector& position) {
        store_first(dx + l, load_first(dx + l, count) + reduction.part(gradient, position), count);
      });
    }
  }

  Problem p_;
  std::int64_t inner_, outer_;
  int threads_;
};

}  // namespace stepladder::inline STEPLADDER_ISA

// Pooling where a plane is not innermost: x is [outer, height, width, inner], with lanes along
// `inner` (images in chwn, 16 channels in nchw16c). All lanes of a vector have the same window, so
// there are no shuffles, whatever the window, stride and padding. Threads share the planes.
//
// Pooling has what is done with a window:
//
//   forward(problem, operands, plane of x, window, inner, index of the first result in y)
//   backward(the same), which adds to the plane of dx; it is zero before
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/common/cpu/partial_vector.hpp"
#include "kernels/common/cpu/partition.hpp"
#include "kernels/common/cpu/simd.hpp"
#include "kernels/common/variant.hpp"

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

template <class Primitive, class Pooling>
class InnermostPlan final : public PlanOf<Primitive> {
 public:
  using Problem = typename Primitive::Problem;
  using Operands = typename Primitive::Operands;

  InnermostPlan(const Problem& p, const Resources& resources) : p_(p) {
    const bool is_chwn = p.layout == Layout::chwn;
    outer_ = is_chwn ? p.channels : p.planes() / block_channels;
    inner_ = is_chwn ? p.batch : block_channels;
    shares_ = static_cast<int>(std::clamp<std::int64_t>(
        std::min(outer_, p.x_count() / min_elements_per_thread), 1, resources.threads));
  }

  void run(const Operands& o) override {
    if (shares_ == 1) return run_part(o, {0, outer_});
#pragma omp parallel for num_threads(shares_) schedule(static, 1)
    for (int share = 0; share < shares_; ++share) run_part(o, partition(outer_, shares_, share));
  }

 private:
  static constexpr std::int64_t min_elements_per_thread = 16384;  // of x: some microseconds

  void run_part(const Operands& o, const Range& part) const {
    const std::int64_t in = p_.height * p_.width * inner_, out_h = p_.out_h(), out_w = p_.out_w();
    const bool is_forward = p_.direction == decltype(p_.direction)::forward;
    for (std::int64_t plane = part.begin; plane < part.end; ++plane) {
      float* x = o.x + plane * in;
      if (!is_forward) std::fill_n(x, in, 0.0F);
      for (std::int64_t i = 0; i < out_h; ++i)
        for (std::int64_t j = 0; j < out_w; ++j) {
          const std::int64_t result = ((plane * out_h + i) * out_w + j) * inner_;
          if (is_forward)
            Pooling::forward(p_, o, x, window(i, j), inner_, result);
          else
            Pooling::backward(p_, o, x, window(i, j), inner_, result);
        }
    }
  }

  PoolingWindow window(std::int64_t i, std::int64_t j) const {
    const std::int64_t top = i * p_.stride_h - p_.pad_h, left = j * p_.stride_w - p_.pad_w;
    return {top,
            left,
            {std::max<std::int64_t>(0, -top), std::min(p_.window_h, p_.height - top)},
            {std::max<std::int64_t>(0, -left), std::min(p_.window_w, p_.width - left)}};
  }

  Problem p_;
  std::int64_t outer_ = 0, inner_ = 0;
  int shares_ = 1;
};

}  // namespace stepladder::inline STEPLADDER_ISA

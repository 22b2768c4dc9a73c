// Max pooling where a plane is not innermost: x is [outer, height, width, inner], with lanes along
// `inner` (images in chwn, 16 channels in nchw16c). All lanes of a vector have the same window, so
// there are no shuffles, whatever the window, stride and padding.
//
//   forward    best = max(best, x of the position), for the positions inside the plane
//   backward   dx of the position += argmax is the position ? dy : 0
#pragma once

#include <algorithm>

#include "kernels/common/cpu/partial_vector.hpp"
#include "kernels/common/cpu/partition.hpp"
#include "kernels/max_pool/cpu/simd/argmax.hpp"
#include "kernels/max_pool/max_pool.hpp"

namespace stepladder::max_pool::inline STEPLADDER_ISA {

class InnermostPooling final : public Plan {
 public:
  InnermostPooling(const Problem& p, const Resources& resources) : p_(p) {
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
  static constexpr std::int64_t lanes = Vector::size;
  static constexpr std::int64_t min_elements_per_thread = 16384;  // of x: some microseconds

  void run_part(const Operands& o, const Range& part) const {
    const std::int64_t in = p_.height * p_.width * inner_, out_h = p_.out_h(), out_w = p_.out_w();
    const bool is_forward = p_.direction == Direction::forward;
    for (std::int64_t plane = part.begin; plane < part.end; ++plane) {
      float* x = o.x + plane * in;
      if (!is_forward) std::fill_n(x, in, 0.0F);
      for (std::int64_t i = 0; i < out_h; ++i)
        for (std::int64_t j = 0; j < out_w; ++j) {
          const std::int64_t at = ((plane * out_h + i) * out_w + j) * inner_;
          if (is_forward)
            forward(x, i, j, o.y + at, o.argmax + at);
          else
            backward(x, i, j, o.y + at, o.argmax + at);
        }
    }
  }

  // Positions of window (i, j) that are inside the plane.
  struct Window {
    std::int64_t top, left;  // of the corner; may be in the padding
    Range rows, columns;
  };
  Window window(std::int64_t i, std::int64_t j) const {
    const std::int64_t top = i * p_.stride_h - p_.pad_h, left = j * p_.stride_w - p_.pad_w;
    return {top,
            left,
            {std::max<std::int64_t>(0, -top), std::min(p_.window_h, p_.height - top)},
            {std::max<std::int64_t>(0, -left), std::min(p_.window_w, p_.width - left)}};
  }

  void forward(const float* plane, std::int64_t i, std::int64_t j, float* y,
               std::uint8_t* argmax) const {
    const Window at = window(i, j);
    for (std::int64_t l = 0; l < inner_; l += lanes) {
      const std::int64_t count = std::min(lanes, inner_ - l);
      const auto value = [&](std::int64_t r, std::int64_t s) {
        return load(plane + ((at.top + r) * p_.width + at.left + s) * inner_ + l, count);
      };
      const auto position = [&](std::int64_t r, std::int64_t s) {
        return Vector(static_cast<float>(r * p_.window_w + s));
      };
      Vector best = value(at.rows.begin, at.columns.begin);
      Vector best_position = position(at.rows.begin, at.columns.begin);
      for (std::int64_t r = at.rows.begin; r < at.rows.end; ++r)
        for (std::int64_t s = at.columns.begin; s < at.columns.end; ++s) {
          const Vector x = value(r, s);
          best_position = xsimd::select(x > best, position(r, s), best_position);
          best = xsimd::max(x, best);
        }
      store(y + l, best, count);
      store_argmax_within(argmax + l, best_position, count);
    }
  }

  void backward(float* plane, std::int64_t i, std::int64_t j, const float* dy,
                const std::uint8_t* argmax) const {
    const Window at = window(i, j);
    for (std::int64_t l = 0; l < inner_; l += lanes) {
      const std::int64_t count = std::min(lanes, inner_ - l);
      const Vector g = load(dy + l, count), largest = load_positions(argmax + l, count);
      for (std::int64_t r = at.rows.begin; r < at.rows.end; ++r)
        for (std::int64_t s = at.columns.begin; s < at.columns.end; ++s) {
          float* dx = plane + ((at.top + r) * p_.width + at.left + s) * inner_ + l;
          const Vector position(static_cast<float>(r * p_.window_w + s));
          store(dx, load(dx, count) + where(largest == position, g), count);
        }
    }
  }

  // The first `count` elements.
  static Vector load(const float* p, std::int64_t count) {
    return count == lanes ? Vector::load_unaligned(p) : load_partial(p, count);
  }
  static void store(float* p, const Vector& v, std::int64_t count) {
    if (count == lanes)
      v.store_unaligned(p);
    else
      store_partial(p, v, count);
  }
  static Vector load_positions(const std::uint8_t* p, std::int64_t count) {
    std::uint8_t bytes[lanes] = {};
    std::copy_n(p, count, bytes);
    return load_argmax(bytes, static_cast<Vector*>(nullptr));
  }

  Problem p_;
  std::int64_t outer_ = 0, inner_ = 0;
  int shares_ = 1;
};

}  // namespace stepladder::max_pool::inline STEPLADDER_ISA

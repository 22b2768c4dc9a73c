// Average pooling where a plane is not innermost: x is [outer, height, width, inner], with lanes
// along `inner` (images in chwn, 16 channels in nchw16c). All lanes of a vector have the same window
// and divisor, so there are no shuffles, whatever the window, stride and padding.
//
//   forward    y = (sum of x of the positions inside the plane) · 1 / divisor
//   backward   dx of each of these positions += dy · 1 / divisor
#pragma once

#include <algorithm>

#include "kernels/average_pool/average_pool.hpp"
#include "kernels/common/cpu/partial_vector.hpp"
#include "kernels/common/cpu/partition.hpp"

namespace stepladder::average_pool::inline STEPLADDER_ISA {

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
        for (std::int64_t j = 0; j < out_w; ++j)
          window(x, i, j, o.y + ((plane * out_h + i) * out_w + j) * inner_, is_forward);
    }
  }

  void window(float* plane, std::int64_t i, std::int64_t j, float* y, bool is_forward) const {
    const std::int64_t top = i * p_.stride_h - p_.pad_h, left = j * p_.stride_w - p_.pad_w;
    const Range rows{std::max<std::int64_t>(0, top), std::min(top + p_.window_h, p_.height)};
    const Range columns{std::max<std::int64_t>(0, left), std::min(left + p_.window_w, p_.width)};
    const std::int64_t inside = (rows.end - rows.begin) * (columns.end - columns.begin);
    const Vector factor(1.0F / static_cast<float>(p_.count == Count::include_padding
                                                      ? p_.window_h * p_.window_w
                                                      : inside));
    for (std::int64_t l = 0; l < inner_; l += lanes) {
      const std::int64_t count = std::min(lanes, inner_ - l);
      Vector sum(0.0F);
      const Vector share = is_forward ? sum : load(y + l, count) * factor;
      for (std::int64_t h = rows.begin; h < rows.end; ++h)
        for (std::int64_t w = columns.begin; w < columns.end; ++w) {
          float* x = plane + (h * p_.width + w) * inner_ + l;
          if (is_forward)
            sum = sum + load(x, count);
          else
            store(x, load(x, count) + share, count);
        }
      if (is_forward) store(y + l, sum * factor, count);
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

  Problem p_;
  std::int64_t outer_ = 0, inner_ = 0;
  int shares_ = 1;
};

}  // namespace stepladder::average_pool::inline STEPLADDER_ISA

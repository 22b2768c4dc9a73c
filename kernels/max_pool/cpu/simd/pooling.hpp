// Max pooling of planes on vectors, shared by simd, openmp and streaming. Chooses the kernel for
// the window, and the vector width for the row: the narrowest that holds a whole row, otherwise
// the widest.
#pragma once

#include <algorithm>
#include <bit>
#include <limits>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/planes.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/max_pool/cpu/simd/backward.hpp"
#include "kernels/max_pool/cpu/simd/forward.hpp"

namespace stepladder::max_pool::inline STEPLADDER_ISA {

class SimdPooling {
 public:
  // Up to `threads` threads call run() concurrently, on distinct planes. With `streaming`, x is
  // prefetched in memory order and dx is stored past the caches; throws Unsupported if the rows of
  // dx are not whole pairs of vectors.
  SimdPooling(const Problem& p, int threads, bool streaming = false)
      : p_(p), threads_(threads), streaming_(streaming) {
    if (p.direction == Direction::forward)
      with_width(p.out_w(), [&]<class V>(V*) { prepare_forward<V>(); });
    else if (has_stride_2(p, 2, 0))
      with_width(ceil_div(p.width, 2), [&]<class V>(V*) { prepare_backward<V, 2, 0>(); });
    else if (has_stride_2(p, 3, 0))
      with_width(ceil_div(p.width, 2), [&]<class V>(V*) { prepare_backward<V, 3, 0>(); });
    else if (has_stride_2(p, 3, 1))
      with_width(ceil_div(p.width, 2), [&]<class V>(V*) { prepare_backward<V, 3, 1>(); });
    else
      prepare_scatter();
    if (streaming && !whole_vectors_)
      throw Unsupported(
          "backward supports windows of 2 x 2 and 3 x 3 with stride 2, on rows that are a multiple "
          "of two vectors");
  }

  // Pools planes [first, last) of batch · channels; 0 <= thread < threads.
  void run(const Operands& o, std::int64_t first, std::int64_t last, int thread) const {
    (this->*run_)(o, first, last, thread);
    if (streaming_) finish_streaming();
  }

 private:
  // `count` elements, rounded up to whole vectors.
  template <class V>
  static std::int64_t whole_vectors(std::int64_t count) {
    constexpr auto lanes = static_cast<std::int64_t>(V::size);
    return round_up(count, lanes);
  }

  // The number of planes that can be read in place: vectors may read past the end of a plane,
  // `reach` elements from its start, but not past the end of the array.
  std::int64_t planes_within(std::int64_t reach, std::int64_t plane_count) const {
    const std::int64_t spare = p_.planes() * plane_count - reach;
    return spare < 0 ? 0 : std::min(p_.planes(), spare / plane_count + 1);
  }

  void allocate_lines(std::int64_t count, float fill) {
    lines_count_ = round_up(count, 16);
    lines_ = aligned_array<float>(lines_count_ * threads_);
    std::fill_n(lines_.get(), lines_count_ * threads_, fill);
  }

  template <class V>
  void prepare_forward() {
    const Problem& p = p_;
    const std::int64_t columns = whole_vectors<V>(p.out_w());
    const std::int64_t read = (columns - 1) * p.stride_w + p.window_w;  // elements of a row
    line_rows_ = (p.out_h() - 1) * p.stride_h + p.window_h;
    pitch_ = std::max(read, p.pad_w + p.width);
    const bool padded = p.pad_h > 0 || p.pad_w > 0;
    if (!padded) {
      direct_planes_ = planes_within((line_rows_ - 1) * p.width + read, p.height * p.width);
    } else if (has_stride_2(p, 3, p.pad_h)) {
      first_direct_ = 1;  // the first plane would be read before its start
      direct_planes_ = planes_within((p.height - 1) * p.width + read, p.height * p.width);
    }
    if (first_direct_ > 0 || direct_planes_ < p.planes())
      allocate_lines(line_rows_ * pitch_, -std::numeric_limits<float>::infinity());
    if (padded) {
      first_inside_ = aligned_array<float>(columns);
      last_inside_ = aligned_array<float>(columns);
      for (std::int64_t j = 0; j < columns; ++j) {
        const std::int64_t corner = j * p.stride_w - p.pad_w;
        first_inside_[j] = static_cast<float>(std::max<std::int64_t>(0, -corner));
        last_inside_[j] = static_cast<float>(std::min(p.window_w, p.width - corner) - 1);
      }
    }

    if (has_stride_2(p, 2, p.pad_h))
      run_ = &SimdPooling::forward<V, 2, 2>;
    else if (has_stride_2(p, 3, p.pad_h))
      run_ = &SimdPooling::forward<V, 2, 3>;
    else if (p.stride_w == 2)
      run_ = &SimdPooling::forward<V, 2, 0>;
    else if (p.stride_w == 1)
      run_ = &SimdPooling::forward<V, 1, 0>;
    else
      run_ = &SimdPooling::forward<V, 0, 0>;
  }

  template <class V, int stride, int window>
  void forward(const Operands& o, std::int64_t first, std::int64_t last, int thread) const {
    float* lines = lines_.get() + thread * lines_count_;
    const std::int64_t in = p_.height * p_.width, out = p_.out_h() * p_.out_w();
    for (std::int64_t plane = first; plane < last; ++plane) {
      const float* x = o.x + plane * in;
      const bool direct = plane >= first_direct_ && plane < direct_planes_;
      if (!direct)
        for (std::int64_t h = 0; h < std::min(p_.height, line_rows_ - p_.pad_h); ++h)
          std::copy_n(x + h * p_.width, p_.width, lines + (h + p_.pad_h) * pitch_ + p_.pad_w);
      const ForwardPlane operands{.x = direct ? x - p_.pad_h * p_.width - p_.pad_w : lines,
                                  .pitch = direct ? p_.width : pitch_,
                                  .y = o.y + plane * out,
                                  .argmax = o.argmax + plane * out,
                                  .writable = (last - plane) * out,
                                  .first_inside = first_inside_.get(),
                                  .last_inside = last_inside_.get(),
                                  .prefetch = streaming_};
      if constexpr (stride == 2 && window == 3) {
        const bool narrow = p_.out_w() < static_cast<std::int64_t>(V::size);
        if (first_inside_)
          narrow ? forward_plane_3x3<V, true, true>(p_, operands)
                 : forward_plane_3x3<V, true, false>(p_, operands);
        else
          narrow ? forward_plane_3x3<V, false, true>(p_, operands)
                 : forward_plane_3x3<V, false, false>(p_, operands);
      } else {
        forward_plane<V, stride, window>(p_, operands);
      }
    }
  }

  template <class V, int window, int pad>
  void prepare_backward() {
    const Problem& p = p_;
    constexpr std::int64_t smallest = shift(0, pad), largest = shift(window - 1, pad);
    const std::int64_t columns = whole_vectors<V>(ceil_div(p.width, 2));
    pitch_ = largest + std::max(p.out_w(), columns - smallest);
    first_direct_ = largest > 0 ? 1 : 0;  // the first plane would be read one element early
    direct_planes_ =
        planes_within((p.out_h() - 1) * p.out_w() + columns - smallest, p.out_h() * p.out_w());
    line_rows_ = p.out_h() + 1;  // the first one stays empty
    allocate_lines(line_rows_ * pitch_, 0);
    argmax_lines_ = aligned_array<std::uint8_t>(lines_count_ * threads_);
    std::fill_n(argmax_lines_.get(), lines_count_ * threads_, std::uint8_t{0});
    inside_ = aligned_array<float>(2 * columns);
    for (std::int64_t t = 0; t < 2; ++t)
      for (std::int64_t m = 0; m < columns; ++m) {
        const std::int64_t j = m - smallest - t;
        inside_[t * columns + m] = std::bit_cast<float>(j >= 0 && j < p.out_w() ? ~0U : 0U);
      }
    whole_vectors_ = p.width % (2 * static_cast<std::int64_t>(V::size)) == 0;
    run_ = &SimdPooling::backward<V, window, pad>;
  }

  template <class V, int window, int pad>
  void backward(const Operands& o, std::int64_t first, std::int64_t last, int thread) const {
    const std::int64_t in = p_.height * p_.width, out_w = p_.out_w(), out = p_.out_h() * out_w;
    const std::int64_t columns = whole_vectors<V>(ceil_div(p_.width, 2));
    const std::int64_t before = shift(window - 1, pad);
    float* lines = lines_.get() + thread * lines_count_ + before;
    std::uint8_t* argmax_lines = argmax_lines_.get() + thread * lines_count_ + before;
    for (std::int64_t plane = first; plane < last; ++plane) {
      const float* dy = o.y + plane * out;
      const std::uint8_t* argmax = o.argmax + plane * out;
      const bool direct = plane >= first_direct_ && plane < direct_planes_;
      if (!direct)
        for (std::int64_t i = 0; i < p_.out_h(); ++i) {
          std::copy_n(dy + i * out_w, out_w, lines + (i + 1) * pitch_);
          std::copy_n(argmax + i * out_w, out_w, argmax_lines + (i + 1) * pitch_);
        }
      const bool past_caches = streaming_ && reinterpret_cast<std::uintptr_t>(o.x) % sizeof(V) == 0;
      const auto kernel = past_caches ? backward_plane<V, window, pad, true>
                                      : backward_plane<V, window, pad, false>;
      kernel(p_, {.dy = direct ? dy : lines + pitch_,
                  .argmax = direct ? argmax : argmax_lines + pitch_,
                  .pitch = direct ? out_w : pitch_,
                  .zero_dy = lines,
                  .zero_argmax = argmax_lines,
                  .inside = {inside_.get(), inside_.get() + columns},
                  .dx = o.x + plane * in,
                  .writable = (last - plane) * in});
    }
  }

  void prepare_scatter() {
    for (std::int64_t position = 0; position < p_.window_h * p_.window_w; ++position)
      offset_[position] = position / p_.window_w * p_.width + position % p_.window_w;
    whole_vectors_ = false;
    run_ = &SimdPooling::scatter;
  }

  // Any other window: the scatter of branchless, plane by plane, while dx is in L1.
  void scatter(const Operands& o, std::int64_t first, std::int64_t last, int) const {
    const std::int64_t in = p_.height * p_.width, out_h = p_.out_h(), out_w = p_.out_w();
    for (std::int64_t plane = first; plane < last; ++plane) {
      float* dx = o.x + plane * in;
      std::fill_n(dx, in, 0.0F);
      for (std::int64_t i = 0; i < out_h; ++i) {
        float* row = dx + (i * p_.stride_h - p_.pad_h) * p_.width - p_.pad_w;
        const std::int64_t from = (plane * out_h + i) * out_w;
        for (std::int64_t j = 0; j < out_w; ++j)
          row[j * p_.stride_w + offset_[o.argmax[from + j]]] += o.y[from + j];
      }
    }
  }

  using Run = void (SimdPooling::*)(const Operands&, std::int64_t, std::int64_t, int) const;

  Problem p_;
  int threads_;
  bool streaming_;
  bool whole_vectors_ = true;  // backward: rows of dx are whole pairs of vectors
  Run run_ = nullptr;
  // Planes [first_direct_, direct_planes_) are read in place, the others from padded copies.
  std::int64_t first_direct_ = 0, direct_planes_ = 0;
  AlignedArray<float> lines_;  // [threads][lines_count_]: x forward, dy backward
  AlignedArray<std::uint8_t> argmax_lines_;
  std::int64_t lines_count_ = 0, line_rows_ = 0, pitch_ = 0;
  AlignedArray<float> first_inside_, last_inside_;  // forward, see ForwardPlane
  AlignedArray<float> inside_;                      // backward, see BackwardPlane: [2][columns]
  std::int64_t offset_[256];  // scatter: in x, of a window position from the window's corner
};

}  // namespace stepladder::max_pool::inline STEPLADDER_ISA

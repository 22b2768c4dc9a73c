// The source of a correlation as planes of 32-bit elements that hold the padding, so that a tap of
// all pixels is an offset in a plane. An element is a few narrow numbers: of neighbouring slots, or
// of a slot in several images. A slot is a channel; where channels are few, it is a (channel, tap).
//
//   planes     [elements][phases_h][phases_w][rows][pitch]
//   position   of a pixel in its plane. What is next to a pixel is next to it for all taps. Rows are
//              longer than those of the target, by the padding between two rows, which serves both:
//              the positions there are computed and not stored.
//
// A stride s > 1 has s x s phases, one for each remainder of a row and of a column.
#pragma once

#include <algorithm>
#include <bit>
#include <span>
#include <vector>

#include "kernels/common/cpu/narrow/dot_products.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/convolution/axis.hpp"

namespace stepladder::convolution {

class Planes {
 public:
  // 16 positions, of which `stored` are pixels of the target, from `first` on.
  struct Pixels {
    __mmask16 stored;
    std::int64_t first;
  };
  struct Slot {
    std::int64_t channel, h, w;  // the tap, if taps are unfolded
  };

  // unfolds_h, unfolds_w: rows, or columns, of the kernel are slots. slots_of_element: 1 if the
  // numbers of an element are of several images.
  Planes(const Correlation& of, std::int64_t channels, bool unfolds_h, bool unfolds_w,
         std::int64_t slots_of_element)
      : h_(of.h),
        w_(of.w),
        unfolded_h_(unfolds_h ? h_.taps : 1),
        unfolded_w_(unfolds_w ? w_.taps : 1),
        slots_(channels * unfolded_h_ * unfolded_w_),
        slots_of_element_(slots_of_element),
        elements_(ceil_div(slots_, slots_of_element)),
        phases_h_(std::min(h_.stride, h_.taps / unfolded_h_)),
        phases_w_(std::min(w_.stride, w_.taps / unfolded_w_)),
        read_(w_.pixels + (w_.taps / unfolded_w_ - 1) / w_.stride),
        pitch_(pitch()),
        plane_((h_.pixels + (h_.taps / unfolded_h_ - 1) / h_.stride) * pitch_) {
    for (std::int64_t t = 0; t < h_.taps / unfolded_h_; ++t)
      for (std::int64_t u = 0; u < w_.taps / unfolded_w_; ++u)
        taps_.push_back((t % h_.stride * phases_w_ + u % w_.stride) * plane_ +
                        t / h_.stride * pitch_ + u / w_.stride);
    const std::int64_t positions = (h_.pixels - 1) * pitch_ + w_.pixels;
    std::int64_t pixel = 0;
    for (std::int64_t first = 0; first < positions; first += narrow::lanes) {
      const std::int64_t before = pixel;
      unsigned stored = 0;
      for (std::int64_t i = 0; i < narrow::lanes && first + i < positions; ++i)
        if ((first + i) % pitch_ < w_.pixels) {
          stored |= 1U << i;
          ++pixel;
        }
      vectors_.push_back({static_cast<__mmask16>(stored), before});
    }
  }

  std::int64_t slots() const { return slots_; }
  std::int64_t elements() const { return elements_; }
  // In elements: from one to the next, and of `elements` with what is read behind the last.
  std::int64_t stride() const { return phases_h_ * phases_w_ * plane_; }
  std::int64_t size(std::int64_t elements) const {
    return elements * stride() + 3 * narrow::lanes + read_ - pitch_;
  }
  const std::vector<std::int64_t>& taps() const { return taps_; }  // offsets of position 0
  const std::vector<Pixels>& vectors() const { return vectors_; }

  Slot slot(std::int64_t index) const {
    return {index / unfolded_w_ / unfolded_h_, index / unfolded_w_ % unfolded_h_,
            index % unfolded_w_};
  }

  // Makes the elements from images of [channels, height, width] of the source; a null image is 0.
  // numbers(values): an element from Numbers::count vectors. What lies behind the elements, up to
  // `size`, is numbers(0).
  template <class Numbers>
  STEPLADDER_DOT_TARGET void fill(std::span<const float* const> images, const Numbers& numbers,
                                  std::uint32_t* to, std::int64_t size) const {
    const std::uint32_t* end = to + size;
    for (std::int64_t e = 0; e < elements_; ++e) {
      const float* planes[Numbers::count];
      Slot slots[Numbers::count];
      for (std::int64_t i = 0; i < Numbers::count; ++i) {
        const std::int64_t index = e * slots_of_element_ + (slots_of_element_ == 1 ? 0 : i);
        const float* image = images[static_cast<std::size_t>(slots_of_element_ == 1 ? i : 0)];
        slots[i] = slot(std::min(index, slots_ - 1));
        planes[i] = image == nullptr || index >= slots_
                        ? nullptr
                        : image + slots[i].channel * h_.source * w_.source;
      }
      for (std::int64_t phase_h = 0; phase_h < phases_h_; ++phase_h)
        for (std::int64_t phase_w = 0; phase_w < phases_w_; ++phase_w)
          for (std::int64_t row = 0; row < plane_ / pitch_; ++row, to += pitch_) {
            const float* rows[Numbers::count];
            std::int64_t columns[Numbers::count];
            for (std::int64_t i = 0; i < Numbers::count; ++i) {
              const std::int64_t from = row * h_.stride + phase_h + slots[i].h + h_.origin;
              rows[i] = planes[i] == nullptr || from < 0 || from >= h_.source
                            ? nullptr
                            : planes[i] + from * w_.source;
              columns[i] = phase_w + slots[i].w + w_.origin;
            }
            for (std::int64_t first = 0; first < pitch_; first += narrow::lanes) {
              __m512 values[Numbers::count];
              for (std::int64_t i = 0; i < Numbers::count; ++i)
                values[i] = rows[i] == nullptr
                                ? _mm512_setzero_ps()
                                : load_columns(rows[i], first * w_.stride + columns[i]);
              _mm512_mask_storeu_epi32(to + first, narrow::first_lanes(pitch_ - first),
                                       numbers(values));
            }
          }
    }
    const __m512 zeros[Numbers::count]{};
    for (const __m512i zero = numbers(zeros); to < end; to += narrow::lanes)
      _mm512_mask_storeu_epi32(to, narrow::first_lanes(end - to), zero);
  }

 private:
  // A row has the columns of the source and the padding on their left. On their right, taps read
  // the padding of the next row.
  std::int64_t pitch() const {
    if (unfolded_w_ > 1) return w_.pixels;
    std::int64_t padding = read_, pitch = w_.pixels;
    for (std::int64_t phase = 0; phase < phases_w_; ++phase) {
      const std::int64_t origin = w_.origin + phase;
      padding = std::min(padding, ceil_div(std::max(-origin, std::int64_t{0}), w_.stride));
      pitch = std::max(pitch, ceil_div(std::max(w_.source - origin, std::int64_t{0}), w_.stride));
    }
    return std::clamp(pitch, read_ - padding, read_);
  }

  // Of a row, each w_.stride-th column from `first` on; 0 outside.
  STEPLADDER_DOT_INLINE __m512 load_columns(const float* row, std::int64_t first) const {
    const std::int64_t stride = w_.stride;
    const auto inside = static_cast<__mmask16>(
        narrow::first_lanes(ceil_div(std::max(w_.source - first, std::int64_t{0}), stride)) &
        ~(first < 0 ? narrow::first_lanes(ceil_div(-first, stride)) : __mmask16{0}));
    if (stride == 1) return _mm512_maskz_loadu_ps(inside, row + first);
    const __m512i index =
        _mm512_mullo_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                           _mm512_set1_epi32(static_cast<int>(stride)));
    return _mm512_mask_i32gather_ps(_mm512_setzero_ps(), inside, index, row + first, 4);
  }

  Axis h_, w_;
  std::int64_t unfolded_h_, unfolded_w_, slots_, slots_of_element_, elements_;
  std::int64_t phases_h_, phases_w_;
  std::int64_t read_;  // elements of a row that taps of one row of pixels read
  std::int64_t pitch_, plane_;
  std::vector<std::int64_t> taps_;
  std::vector<Pixels> vectors_;
};

}  // namespace stepladder::convolution

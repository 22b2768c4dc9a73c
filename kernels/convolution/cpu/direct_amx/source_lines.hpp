// The source of a correlation in cache lines of 16 elements, with the padding, so that 16
// neighbouring pixels are a tile of the matrix unit, and a tap of all pixels is an offset. An
// element is 32 bits: narrow numbers of neighbouring slots, or of a slot in two images. A slot is a
// channel; where channels are few, it is a (channel, tap).
//
//   lines      [groups of 16 elements][phases_h][phases_w][rows][pitch]
//   position   of a pixel in these rows. What is next to a pixel is next to it for all taps. Rows
//              are longer than those of the target, by the padding between two rows, which serves
//              both: the positions there are computed and not stored.
//
// A stride s > 1 has s x s phases, one for each remainder of a row and of a column.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "kernels/common/cpu/narrow/interleaved.hpp"
#include "kernels/common/cpu/narrow/packed_product.hpp"
#include "kernels/common/cpu/narrow/quantize.hpp"
#include "kernels/convolution/axis.hpp"

namespace stepladder::convolution {

// Two vectors rounded to bf16: elements of their numbers i.
STEPLADDER_DOT_INLINE __m512i pairs(__m512 first, __m512 second) {
  return _mm512_permutexvar_epi16(_mm512_load_si512(narrow::interleaved),
                                  (__m512i)_mm512_cvtne2ps_pbh(second, first));
}

// What an element is: `numbers` of as many vectors of floats.
struct PairOfSlots {
  using Dot = narrow::DotBf16;
  static constexpr std::int64_t numbers = 2, slots = 2;
  STEPLADDER_DOT_INLINE __m512i operator()(const __m512 (&of)[numbers]) const {
    return pairs(of[0], of[1]);
  }
};
struct PairOfImages : PairOfSlots {
  static constexpr std::int64_t slots = 1;
};
// With 128 added, as the instruction takes uint8.
struct QuadOfSlots {
  using Dot = narrow::DotQuantized;
  static constexpr std::int64_t numbers = 4, slots = 4;
  float inverse = 0;
  STEPLADDER_DOT_INLINE __m512i operator()(const __m512 (&of)[numbers]) const {
    __m512i four[numbers];
    for (std::int64_t i = 0; i < numbers; ++i)
      four[i] = narrow::quantized(of[i], _mm512_set1_ps(inverse));
    return narrow::with_offset(narrow::quads(four));
  }
};

template <class Element>
class SourceLines {
 public:
  // 16 positions, of which `stored` are `count` pixels of the target, from `first` on.
  struct Pixels {
    __mmask16 stored;
    std::int64_t count, first;
  };
  struct Slot {
    std::int64_t channel, h, w;  // the tap, if taps are slots
  };
  using Images = std::array<const float*, 2>;

  SourceLines(const Correlation& of, std::int64_t channels)
      : h_(of.h),
        w_(of.w),
        slot_h_(unfolds(channels) ? h_.taps : 1),
        slot_w_(unfolds(channels) ? w_.taps : 1),
        slots_(channels * slot_h_ * slot_w_),
        groups_(ceil_div(slots_, slots_of_group)),
        phases_h_(std::min(h_.stride, taps_h())),
        phases_w_(std::min(w_.stride, taps_w())),
        read_(w_.pixels + (taps_w() - 1) / w_.stride),
        pitch_(pitch()),
        plane_((h_.pixels + (taps_h() - 1) / h_.stride) * pitch_) {
    for (std::int64_t t = 0; t < taps_h(); ++t)
      for (std::int64_t u = 0; u < taps_w(); ++u)
        taps_.push_back(narrow::vector_bytes *
                        ((t % h_.stride * phases_w_ + u % w_.stride) * plane_ +
                         t / h_.stride * pitch_ + u / w_.stride));
    const std::int64_t positions = (h_.pixels - 1) * pitch_ + w_.pixels;
    std::int64_t pixel = 0;
    for (std::int64_t first = 0; first < positions; first += narrow::tile_side) {
      Pixels pixels{0, 0, pixel};
      for (std::int64_t i = 0; i < narrow::tile_side && first + i < positions; ++i)
        if ((first + i) % pitch_ < w_.pixels) {
          pixels.stored |= static_cast<__mmask16>(1U << i);
          ++pixels.count;
        }
      pixel += pixels.count;
      tiles_.push_back(pixels);
    }
  }

  static constexpr std::int64_t slots_of_group = Element::slots * narrow::tile_side;
  std::int64_t slots() const { return slots_; }
  std::int64_t groups() const { return groups_; }
  std::int64_t group_bytes() const { return phases_h_ * phases_w_ * plane_ * narrow::vector_bytes; }
  // With what tiles and taps read behind the last row.
  std::int64_t bytes() const {
    return groups_ * group_bytes() + (2 * narrow::tile_side + read_) * narrow::vector_bytes;
  }
  // Bytes from what tap 0 reads; taps that are not slots.
  const std::vector<std::int64_t>& taps() const { return taps_; }
  const std::vector<Pixels>& tiles() const { return tiles_; }  // of 16 positions

  // Of all source channels and taps in the order of nchw weights: what slot `index` reads for tap
  // `tap` of taps().
  Slot slot(std::int64_t index, std::int64_t tap) const {
    return {index / slot_w_ / slot_h_, index / slot_w_ % slot_h_ + tap / taps_w(),
            index % slot_w_ + tap % taps_w()};
  }

  // From images of [channels, height, width]. PairOfImages alone reads the second; null stands for
  // zeros.
  STEPLADDER_DOT_TARGET void fill(const Images& images, const Element& element,
                                  std::byte* to) const {
    for (std::int64_t group = 0; group < groups_; ++group)
      for (std::int64_t phase = 0; phase < phases_h_ * phases_w_; ++phase) {
        fill(images, element, group, {phase / phases_w_, phase % phases_w_}, to);
        to += plane_ * narrow::vector_bytes;
      }
    set_zero(element, to, 2 * narrow::tile_side + read_);
  }

 private:
  // Whether taps are slots: where channels would leave most of a line empty.
  bool unfolds(std::int64_t channels) const {
    constexpr std::int64_t few_channels = 8, most_slots = 512;
    return channels < few_channels && channels * h_.taps * w_.taps <= most_slots;
  }
  std::int64_t taps_h() const { return h_.taps / slot_h_; }
  std::int64_t taps_w() const { return w_.taps / slot_w_; }

  // A row has the columns of the source and the padding on their left. On their right, taps read
  // the padding of the next row.
  std::int64_t pitch() const {
    std::int64_t padding = read_, pitch = w_.pixels;
    if (slot_w_ > 1) return pitch;
    for (std::int64_t phase = 0; phase < phases_w_; ++phase) {
      padding = std::min(padding, columns(phase).begin);
      pitch = std::max(pitch, columns(phase).end);
    }
    return std::clamp(pitch, read_ - padding, read_);
  }

  // The part of a row that is not padding; all of it where columns of the kernel are slots.
  Range columns(std::int64_t phase) const {
    if (slot_w_ > 1) return {0, w_.pixels};
    const std::int64_t origin = w_.origin + phase,
                       begin = ceil_div(std::max(-origin, std::int64_t{0}), w_.stride);
    return {begin,
            std::max(begin, ceil_div(std::max(w_.source - origin, std::int64_t{0}), w_.stride))};
  }

  STEPLADDER_DOT_TARGET static void set_zero(const Element& element, std::byte* to,
                                             std::int64_t lines) {
    const __m512 zeros[Element::numbers]{};
    const __m512i line = element(zeros);
    for (std::int64_t i = 0; i < lines; ++i)
      _mm512_store_si512(to + i * narrow::vector_bytes, line);
  }

  struct Phase {
    std::int64_t h, w;
  };
  // A number of an element: where row 0 reads it, and which of 16 columns exist.
  struct Source {
    const float* from;
    std::int64_t row;  // of the source, for row 0
    __mmask16 exist;
  };

  // The rows of a phase, 16 columns at a time.
  STEPLADDER_DOT_TARGET void fill(const Images& images, const Element& element, std::int64_t group,
                                  const Phase& phase, std::byte* to) const {
    const std::int64_t rows = plane_ / pitch_;
    const Range all = columns(phase.w),
                inside{std::min(all.begin, pitch_), std::min(all.end, pitch_)};
    for (std::int64_t row = 0; row < rows; ++row) {
      std::byte* line = to + row * pitch_ * narrow::vector_bytes;
      set_zero(element, line, inside.begin);
      set_zero(element, line + inside.end * narrow::vector_bytes, pitch_ - inside.end);
    }
    for (std::int64_t first = inside.begin; first < inside.end; first += narrow::tile_side) {
      const std::int64_t count = std::min(narrow::tile_side, inside.end - first);
      Source sources[narrow::tile_side][Element::numbers];
      for (std::int64_t i = 0; i < narrow::tile_side; ++i)
        for (std::int64_t j = 0; j < Element::numbers; ++j) {
          const bool of_images = Element::slots == 1;
          const std::int64_t slot = group * slots_of_group + i * Element::slots;
          sources[i][j] = source(images[static_cast<std::size_t>(of_images ? j : 0)],
                                 slot + (of_images ? 0 : j), phase, {first, first + count});
        }
      for (std::int64_t row = 0; row < rows; ++row) {
        __m512i v[narrow::tile_side];
#pragma GCC unroll 16
        for (std::int64_t i = 0; i < narrow::tile_side; ++i) {
          __m512 values[Element::numbers];
          for (std::int64_t j = 0; j < Element::numbers; ++j) values[j] = load(sources[i][j], row);
          v[i] = element(values);
        }
        narrow::transpose_groups(v);
        std::byte* line = to + (row * pitch_ + first) * narrow::vector_bytes;
        for (std::int64_t i = 0; i < count; ++i)
          _mm512_store_si512(line + i * narrow::vector_bytes, v[i]);
      }
    }
  }

  Source source(const float* image, std::int64_t index, const Phase& phase,
                const Range& columns) const {
    const Slot at = slot(index, 0);
    const std::int64_t row = phase.h + at.h + h_.origin,
                       column = columns.begin * w_.stride + phase.w + at.w + w_.origin;
    if (index >= slots_ || image == nullptr) return {image, row, 0};
    const std::int64_t before = ceil_div(std::max(-column, std::int64_t{0}), w_.stride),
                       until = ceil_div(std::max(w_.source - column, std::int64_t{0}), w_.stride);
    return {
        image + (at.channel * h_.source + row) * w_.source + column, row,
        static_cast<__mmask16>(narrow::first_lanes(std::min(until, columns.end - columns.begin)) &
                               ~narrow::first_lanes(before))};
  }

  STEPLADDER_DOT_INLINE __m512 load(const Source& source, std::int64_t row) const {
    const std::int64_t at = source.row + row * h_.stride;
    const __mmask16 exist = at >= 0 && at < h_.source ? source.exist : __mmask16{0};
    if (exist == 0) return _mm512_setzero_ps();
    const float* from = source.from + row * h_.stride * w_.source;
    if (w_.stride == 1) return _mm512_maskz_loadu_ps(exist, from);
    const __m512i index =
        _mm512_mullo_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                           _mm512_set1_epi32(static_cast<int>(w_.stride)));
    return _mm512_mask_i32gather_ps(_mm512_setzero_ps(), exist, index, from, sizeof(float));
  }

  Axis h_, w_;
  std::int64_t slot_h_, slot_w_;  // taps that are slots, or 1
  std::int64_t slots_, groups_;
  std::int64_t phases_h_, phases_w_;
  std::int64_t read_;           // of a row, by taps of one row of pixels
  std::int64_t pitch_, plane_;  // in lines
  std::vector<std::int64_t> taps_;
  std::vector<Pixels> tiles_;
};

}  // namespace stepladder::convolution

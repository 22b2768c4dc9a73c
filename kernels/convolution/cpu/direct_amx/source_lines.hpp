// The source of a correlation in cache lines of 16 elements, with the padding, so that 16
// neighbouring pixels are a tile of the matrix unit, and a tap of all pixels is an offset. An
// element is 32 bits: narrow numbers of neighbouring slots, or of a slot in two images. A slot is a
// channel; where channels are few, it is a (channel, tap).
//
//   lines   [groups of 16 elements], each the planes of positions.hpp, a line for each position
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "kernels/common/cpu/narrow/packed_product.hpp"
#include "kernels/common/cpu/narrow/quantize.hpp"
#include "kernels/convolution/cpu/positions.hpp"

namespace stepladder::convolution {

// What an element is: `numbers` of as many vectors of floats.
struct PairOfSlots {
  using Dot = narrow::DotBf16;
  static constexpr std::int64_t numbers = 2, slots = 2;
  STEPLADDER_DOT_INLINE __m512i operator()(const __m512 (&of)[numbers]) const {
    return narrow::bf16_pairs(of[0], of[1]);
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
  struct Slot {
    std::int64_t channel, h, w;  // the tap, if taps are slots
  };
  using Images = std::array<const float*, 2>;

  SourceLines(const Correlation& of, std::int64_t channels)
      : h_(of.h),
        w_(of.w),
        at_(of, unfolds(channels), unfolds(channels)),
        slots_(channels * at_.slot_h * at_.slot_w),
        groups_(ceil_div(slots_, slots_of_group)),
        taps_(at_.taps) {
    for (std::int64_t& tap : taps_) tap *= narrow::vector_bytes;
  }

  static constexpr std::int64_t slots_of_group = Element::slots * narrow::tile_side;
  std::int64_t slots() const { return slots_; }
  std::int64_t groups() const { return groups_; }
  std::int64_t group_bytes() const { return at_.all_phases() * narrow::vector_bytes; }
  // With what tiles and taps read behind the last row.
  std::int64_t bytes() const {
    return groups_ * group_bytes() + lines_behind() * narrow::vector_bytes;
  }
  // Bytes from what tap 0 reads; taps that are not slots.
  const std::vector<std::int64_t>& taps() const { return taps_; }
  const std::vector<Positions::Pixels>& tiles() const { return at_.pixels; }

  // Of all source channels and taps in the order of nchw weights: what slot `index` reads for tap
  // `tap` of taps().
  Slot slot(std::int64_t index, std::int64_t tap) const {
    return {index / at_.slot_w / at_.slot_h, index / at_.slot_w % at_.slot_h + tap / at_.taps_w,
            index % at_.slot_w + tap % at_.taps_w};
  }

  // From images of [channels, height, width]. PairOfImages alone reads the second; null stands for
  // zeros.
  STEPLADDER_DOT_TARGET void fill(const Images& images, const Element& element,
                                  std::byte* to) const {
    for (std::int64_t group = 0; group < groups_; ++group)
      for (std::int64_t phase = 0; phase < at_.phases_h * at_.phases_w; ++phase) {
        fill(images, element, group, {phase / at_.phases_w, phase % at_.phases_w}, to);
        to += at_.plane * narrow::vector_bytes;
      }
    set_zero(element, to, lines_behind());
  }

 private:
  // Whether taps are slots: where channels would leave most of a line empty.
  bool unfolds(std::int64_t channels) const {
    constexpr std::int64_t few_channels = 8, most_slots = 512;
    return channels < few_channels && channels * h_.taps * w_.taps <= most_slots;
  }
  std::int64_t lines_behind() const { return at_.behind(2 * narrow::tile_side); }

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
    const std::int64_t pitch = at_.pitch;
    const Range all = at_.columns(phase.w),
                inside{std::min(all.begin, pitch), std::min(all.end, pitch)};
    for (std::int64_t row = 0; row < at_.rows; ++row) {
      std::byte* line = to + row * pitch * narrow::vector_bytes;
      set_zero(element, line, inside.begin);
      set_zero(element, line + inside.end * narrow::vector_bytes, pitch - inside.end);
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
      for (std::int64_t row = 0; row < at_.rows; ++row) {
        __m512i v[narrow::tile_side];
#pragma GCC unroll 16
        for (std::int64_t i = 0; i < narrow::tile_side; ++i) {
          __m512 values[Element::numbers];
          for (std::int64_t j = 0; j < Element::numbers; ++j) values[j] = load(sources[i][j], row);
          v[i] = element(values);
        }
        narrow::transpose_groups(v);
        std::byte* line = to + (row * pitch + first) * narrow::vector_bytes;
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
    return _mm512_mask_i32gather_ps(_mm512_setzero_ps(), exist, narrow::multiples(w_.stride), from,
                                    sizeof(float));
  }

  Axis h_, w_;
  Positions at_;
  std::int64_t slots_, groups_;
  std::vector<std::int64_t> taps_;
};

}  // namespace stepladder::convolution

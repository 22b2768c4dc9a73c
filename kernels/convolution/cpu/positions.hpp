// Where the pixels of a correlation lie in planes of its source that hold the padding, so that a
// tap of all pixels is an offset.
//
//   planes     [phases_h][phases_w][rows][pitch]: a stride s > 1 has a phase for each remainder
//   position   of a pixel in a plane. What is next to a pixel is next to it for all taps. Rows are
//              longer than those of the target, by the padding between two rows, which serves
//              both: the positions there are computed and not stored.
//
// A slot is a channel; or a (channel, tap), where taps along one or both axes are slots.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/common/cpu/partition.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/convolution/axis.hpp"

namespace stepladder::convolution {

struct Positions {
  static constexpr std::int64_t at_once = 16;
  // at_once positions, of which `stored` are `count` pixels of the target, from `first` on.
  struct Pixels {
    std::uint16_t stored;
    std::int64_t count, first;
  };

  Positions(const Correlation& of, bool rows_are_slots, bool columns_are_slots)
      : w(of.w),
        slot_h(rows_are_slots ? of.h.taps : 1),
        slot_w(columns_are_slots ? w.taps : 1),
        taps_h(of.h.taps / slot_h),
        taps_w(w.taps / slot_w),
        phases_h(std::min(of.h.stride, taps_h)),
        phases_w(std::min(w.stride, taps_w)),
        read(w.pixels + (taps_w - 1) / w.stride),
        pitch(shortest_pitch()),
        rows(of.h.pixels + (taps_h - 1) / of.h.stride),
        plane(rows * pitch) {
    for (std::int64_t t = 0; t < taps_h; ++t)
      for (std::int64_t u = 0; u < taps_w; ++u)
        taps.push_back((t % of.h.stride * phases_w + u % w.stride) * plane +
                       t / of.h.stride * pitch + u / w.stride);
    const std::int64_t positions = (of.h.pixels - 1) * pitch + w.pixels;
    std::int64_t pixel = 0;
    for (std::int64_t first = 0; first < positions; first += at_once) {
      Pixels each{0, 0, pixel};
      for (std::int64_t i = 0; i < at_once && first + i < positions; ++i)
        if ((first + i) % pitch < w.pixels) {
          each.stored = static_cast<std::uint16_t>(each.stored | 1U << i);
          ++each.count;
        }
      pixel += each.count;
      pixels.push_back(each);
    }
  }

  // The part of a row that is not padding; all of it where columns of the kernel are slots.
  Range columns(std::int64_t phase) const {
    if (slot_w > 1) return {0, w.pixels};
    const std::int64_t origin = w.origin + phase,
                       begin = ceil_div(std::max(-origin, std::int64_t{0}), w.stride);
    return {begin,
            std::max(begin, ceil_div(std::max(w.source - origin, std::int64_t{0}), w.stride))};
  }
  std::int64_t all_phases() const { return phases_h * phases_w * plane; }
  // Elements behind the last plane that so many positions at once may read.
  std::int64_t behind(std::int64_t positions) const { return positions + read - pitch; }

  Axis w;
  std::int64_t slot_h, slot_w;  // taps that are slots, or 1
  std::int64_t taps_h, taps_w;  // the others
  std::int64_t phases_h, phases_w;
  std::int64_t read;  // of a row, by the taps of a row of pixels
  std::int64_t pitch, rows, plane;
  std::vector<std::int64_t> taps;  // offsets from what tap 0 reads
  std::vector<Pixels> pixels;

 private:
  // A row has the columns of the source and the padding on their left. On their right, taps read
  // the padding of the next row.
  std::int64_t shortest_pitch() const {
    std::int64_t padding = read, shortest = w.pixels;
    if (slot_w > 1) return shortest;
    for (std::int64_t phase = 0; phase < phases_w; ++phase) {
      padding = std::min(padding, columns(phase).begin);
      shortest = std::max(shortest, columns(phase).end);
    }
    return std::clamp(shortest, read - padding, read);
  }
};

}  // namespace stepladder::convolution

// forward and backward_data without unfolding: the source is read in place, and products with
// padding are skipped.
//
//   tile of the target: up to 14 pixels x 2 vectors of channels, in registers
//
//       weights of a tap   AVX-512, per source channel and tap: 2 vector loads of weights and, per
//         w0  | w1         pixel, 1 broadcast for 2 FMAs. 28 accumulators, 2 vectors of weights and
//   x0    acc | acc        1 pixel take 31 of 32 registers.
//   x1    acc | acc
//   …     …   | …          The pixels are of one row, or of several short rows: 2 x 7 or 4 x 3.
//   x13   acc | acc
//
// A tap that reads padding for all pixels is skipped; one that does for some pixels updates the
// others. Lanes are channels of the target, so the finished tile is transposed when it is stored.
// Elements of two numbers hold two source channels.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>
#include <xsimd/xsimd.hpp>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/partition.hpp"
#include "kernels/common/cpu/transpose.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/convolution/cpu/direct_tile/elements.hpp"
#include "kernels/convolution/cpu/pack_filters.hpp"
#include "kernels/convolution/cpu/threaded_correlation.hpp"
#include "kernels/convolution/cpu/valid_range.hpp"

namespace stepladder::convolution::inline STEPLADDER_ISA {

template <class Elements>
class DirectTileCorrelation final : public ThreadedCorrelation {
 public:
  DirectTileCorrelation(const Problem& problem, int threads)
      : ThreadedCorrelation(problem, threads),
        source_elements_(ceil_div(source_channels_, Elements::numbers)) {
    for (const Correlation& each : correlations_.all) {
      add_sub_correlation(each.h, each.w);
      elements_size_ = std::max({elements_size_, source_elements_ * each.h.source * each.w.source,
                                 Elements::numbers * each.h.taps * each.w.taps * panel});
    }
    packed_ = aligned_array<float>(static_cast<std::size_t>(packed_size_));
    std::fill_n(packed_.get(), packed_size_, 0.0F);
    if constexpr (Elements::numbers > 1)
      elements_ = aligned_array<float>(static_cast<std::size_t>(threads * elements_size_));
  }

 private:
  void pack(int thread, const float* weights) override {
    for (const SubCorrelation& sub : sub_correlations_) pack(sub, thread, weights);
  }
  void correlate(int thread, const float* source, float* target) override {
    for (const SubCorrelation& sub : sub_correlations_) correlate(sub, thread, source, target);
  }

  static constexpr std::int64_t lanes = Vector::size;
  static constexpr std::int64_t max_pixels =
      vector_registers == 32 ? 14 : 6;              // 28 or 12 accumulators
  static constexpr std::int64_t panel = 2 * lanes;  // channels of the target

  // Consecutive rows, or columns, of the target in one tile.
  struct Segment {
    std::int64_t first, size;
    Range taps;                // those that read the source, not padding, for some of them
    std::vector<Range> valid;  // [taps]: for which of them
  };

  // The columns of a tile. Pixel i is in row i / columns.size, column i % columns.size.
  struct TileColumns {
    Segment columns;
    std::vector<std::uint32_t> readers;  // [taps]: a bit per pixel whose column reads the source
    std::array<std::int64_t, max_pixels> offsets;  // of each pixel's source from pixel 0's
  };

  // forward, or one class of pixels of backward_data (axis.hpp).
  struct SubCorrelation {
    Axis h, w;
    std::vector<Segment> rows;
    std::vector<TileColumns> columns;
    std::int64_t packed;  // offset of its weights: [groups, panels, source elements, taps, panel]
  };

  std::int64_t panels() const { return ceil_div(target_channels_, panel); }

  // The pixels of an axis in segments of nearly the same size, `max_size` at most.
  static std::vector<Segment> segments_of(const Axis& axis, std::int64_t max_size) {
    std::vector<Segment> all;
    const std::int64_t count = ceil_div(axis.pixels, max_size);
    for (std::int64_t i = 0; i < count; ++i) {
      const Range part = partition(axis.pixels, count, i);
      Segment segment{part.begin, part.end - part.begin, {axis.taps, 0}, {}};
      for (std::int64_t t = 0; t < axis.taps; ++t) {
        const Range valid = valid_range(axis.source, segment.size, axis.stride,
                                        part.begin * axis.stride + t + axis.origin);
        segment.valid.push_back(valid);
        if (valid.begin < valid.end) segment.taps = {std::min(segment.taps.begin, t), t + 1};
      }
      all.push_back(std::move(segment));
    }
    return all;
  }

  void add_sub_correlation(const Axis& h, const Axis& w) {
    SubCorrelation sub{h, w, {}, {}, packed_size_};
    packed_size_ += p_.groups * panels() * source_elements_ * h.taps * w.taps * panel;
    for (Segment& columns : segments_of(w, max_pixels))
      sub.columns.push_back(tile_columns(h, w, std::move(columns)));
    // Several rows if they are short, but with four tiles per thread, or some would wait for one.
    std::int64_t rows = max_pixels / ceil_div(w.pixels, std::ssize(sub.columns));
    if (threads_ > 1)
      rows = std::clamp<std::int64_t>(p_.batch * p_.groups * panels() * h.pixels / (4 * threads_),
                                      1, rows);
    sub.rows = segments_of(h, rows);
    sub_correlations_.push_back(std::move(sub));
  }

  static TileColumns tile_columns(const Axis& h, const Axis& w, Segment columns) {
    TileColumns tile{std::move(columns), {}, {}};
    const std::int64_t size = tile.columns.size;
    for (std::int64_t i = 0; i < max_pixels; ++i)
      tile.offsets[static_cast<std::size_t>(i)] =
          i / size * h.stride * w.source + i % size * w.stride;
    for (const Range& valid : tile.columns.valid) {
      std::uint32_t bits = 0;
      for (std::int64_t i = 0; i < max_pixels; ++i)
        if (i % size >= valid.begin && i % size < valid.end) bits |= 1U << i;
      tile.readers.push_back(bits);
    }
    return tile;
  }

  float* elements_of(int thread) const { return elements_.get() + thread * elements_size_; }

  // Lanes without a channel keep what they have: nobody stores their sums.
  void pack(const SubCorrelation& sub, int thread, const float* weights) {
    const std::int64_t filter = sub.h.taps * sub.w.taps * panel;
    const Range part = partition(p_.groups * panels() * source_elements_, threads_, thread);
    for (std::int64_t item = part.begin; item < part.end;) {
      const std::int64_t block = item / source_elements_, first = block % panels() * panel;
      // Elements of two numbers one by one, others of a block at once.
      const std::int64_t begin = item - block * source_elements_,
                         end = Elements::numbers > 1 ? begin + 1
                                                     : std::min(part.end - block * source_elements_,
                                                                source_elements_);
      const Range sources{begin * Elements::numbers,
                          std::min(end * Elements::numbers, source_channels_)};
      const Range targets{first, std::min(first + panel, target_channels_)};
      float* packed = packed_.get() + sub.packed + item * filter;
      pack_filters(p_, {sub.h, sub.w}, weights, block / panels(), sources, targets, panel,
                   Elements::numbers > 1 ? elements_of(thread) : packed);
      if constexpr (Elements::numbers > 1) {
        const float* first_filter = elements_of(thread);
        const bool is_pair = sources.end - sources.begin > 1;
        Elements::make(first_filter, is_pair ? first_filter + filter : nullptr, filter, packed);
      }
      item += end - begin;
    }
  }

  // The source of one image and group as elements, [source elements, height, width].
  const float* elements_of_image(int thread, const float* source, std::int64_t plane) const {
    if constexpr (Elements::numbers > 1) {
      float* to = elements_of(thread);
      for (std::int64_t c = 0; c < source_channels_; c += 2, source += 2 * plane, to += plane)
        Elements::make(source, c + 1 < source_channels_ ? source + plane : nullptr, plane, to);
      return elements_of(thread);
    }
    return source;
  }

  // Computes one thread's tiles of all images, groups and panels. The tiles of a panel are
  // consecutive, so its weights stay in L2.
  void correlate(const SubCorrelation& sub, int thread, const float* source, float* target) const {
    static constexpr auto tiles = []<std::size_t... T>(std::index_sequence<T...>) {
      return std::array<Tile, sizeof...(T)>{&tile<T / 2 + 1, T % 2 + 1>...};
    }
    (std::make_index_sequence<2 * max_pixels>{});
    const std::int64_t rows = std::ssize(sub.rows);
    const std::int64_t source_plane = sub.h.source * sub.w.source;
    const std::int64_t target_plane = sub.h.target * sub.w.target;
    const std::int64_t filter = sub.h.taps * sub.w.taps * panel;
    const Range part = partition(p_.batch * p_.groups * panels() * rows, threads_, thread);
    const float* source_image = nullptr;
    for (std::int64_t item = part.begin; item < part.end;) {
      const std::int64_t block = item / rows, first_row = item % rows;
      const std::int64_t index = block % panels(), image_group = block / panels();
      const std::int64_t channels = std::min(panel, target_channels_ - index * panel);
      if (item == part.begin || index == 0)
        source_image =
            elements_of_image(thread, source + image_group * source_channels_ * source_plane,
                              source_plane) +
            sub.w.origin;
      const float* weights =
          packed_.get() + sub.packed +
          (image_group % p_.groups * panels() + index) * source_elements_ * filter;
      float* target_image =
          target + (image_group * target_channels_ + index * panel) * target_plane + sub.w.first;
      const std::int64_t end = std::min(rows, first_row + part.end - item);
      for (std::int64_t row = first_row; row < end; ++row) {
        const Segment& segment = sub.rows[static_cast<std::size_t>(row)];
        const TileRows at{
            .sub = &sub,
            .rows = &segment,
            .source = source_image + (segment.first * sub.h.stride + sub.h.origin) * sub.w.source,
            .weights = weights,
            .target = target_image + (sub.h.first + segment.first * sub.h.step) * sub.w.target,
            .channels = channels};
        for (const TileColumns& columns : sub.columns) {
          const std::int64_t pixels = segment.size * columns.columns.size;
          const std::int64_t tile = (pixels - 1) * 2 + (channels > lanes ? 1 : 0);
          tiles[static_cast<std::size_t>(tile)](at, columns, source_elements_);
        }
      }
      item += end - first_row;
    }
  }

  // The rows of a tile, for one panel of channels.
  struct TileRows {
    const SubCorrelation* sub;
    const Segment* rows;
    const float* source;   // the first element that tap (0, 0) of pixel 0 reads; may be outside
    const float* weights;  // [source elements, taps, panel]
    float* target;         // pixel 0 of the panel's first channel
    std::int64_t channels;
  };

  using Tile = void (*)(const TileRows&, const TileColumns&, std::int64_t source_elements);

  // I runs over the accumulators, pixel by pixel, V over the vectors of channels. contiguous: the
  // pixels are of one row, and their sources have no gaps.
  template <std::int64_t Pixels, std::int64_t Vectors, bool contiguous, std::size_t... I,
            std::size_t... V>
  static void multiply(std::index_sequence<I...>, std::index_sequence<V...>, const TileRows& at,
                       const TileColumns& tile, std::int64_t source_elements, float* block) {
    const Segment &rows = *at.rows, &columns = tile.columns;
    const std::int64_t width = at.sub->w.source, w_taps = at.sub->w.taps;
    const std::int64_t first = columns.taps.begin, last = columns.taps.end;
    const std::int64_t plane = at.sub->h.source * width, filter = at.sub->h.taps * w_taps * panel;
    const bool beyond_l1 = source_elements * plane > 16 << 10;  // 64 KiB
    const float* x_c = at.source + columns.first * at.sub->w.stride + first;
    const float* weights_c = at.weights + first * panel;
    const auto offset = [&](std::size_t pixel) {
      return contiguous ? static_cast<std::int64_t>(pixel) : tile.offsets[pixel];
    };
    constexpr std::uint32_t all = (1U << Pixels) - 1;
    Vector acc[] = {((void)I, Vector(0.0f))...};
    for (std::int64_t c = 0; c < source_elements; ++c, x_c += plane, weights_c += filter)
      for (std::int64_t t = rows.taps.begin; t < rows.taps.end; ++t) {
        std::uint32_t readers = all;
        if constexpr (!contiguous) {
          const Range valid = rows.valid[static_cast<std::size_t>(t)];
          readers &=
              ((1U << valid.end * columns.size) - 1) & ~((1U << valid.begin * columns.size) - 1);
        }
        const float *x = x_c + t * width, *weights = weights_c + t * w_taps * panel;
        if (beyond_l1) {  // a row of the fourth next channel
          __builtin_prefetch(x + 4 * plane);
          __builtin_prefetch(x + 4 * plane + Pixels);
        }
        for (std::int64_t u = first; u < last; ++u, ++x, weights += panel) {
          const Vector w_u[] = {Vector::load_aligned(weights + V * lanes)...};
          const std::uint32_t updated = readers & tile.readers[static_cast<std::size_t>(u)];
          if (updated == all)
            ((acc[I] =
                  Elements::add_products(acc[I], Vector(x[offset(I / Vectors)]), w_u[I % Vectors])),
             ...);
          else
            ((updated >> I / Vectors & 1U
                  ? void(acc[I] = Elements::add_products(acc[I], Vector(x[offset(I / Vectors)]),
                                                         w_u[I % Vectors]))
                  : void()),
             ...);
        }
      }
    (acc[I].store_aligned(block + I * lanes), ...);
  }

  // block: [Pixels, pitch]
  template <std::int64_t Pixels, std::int64_t pitch>
  static void store(const float* block, const TileRows& at, const Segment& columns) {
    const Axis &h = at.sub->h, &w = at.sub->w;
    const std::int64_t plane = h.target * w.target, rows = at.rows->size;
    float* target = at.target + columns.first * w.step;
    const bool whole_rows = columns.size == w.target && h.step == 1;
    if (w.step == 1 && (rows == 1 || whole_rows)) {
      transpose(block, pitch, target, plane, Pixels, at.channels);
      return;
    }
    for (std::int64_t r = 0; r < rows; ++r, block += columns.size * pitch) {
      float* row = target + r * h.step * w.target;
      if (w.step == 1) {
        transpose(block, pitch, row, plane, columns.size, at.channels);
        continue;
      }
      for (std::int64_t i = 0; i < at.channels; ++i, row += plane)
        for (std::int64_t j = 0; j < columns.size; ++j) row[j * w.step] = block[j * pitch + i];
    }
  }

  template <std::int64_t Pixels, std::int64_t Vectors>
  static void tile(const TileRows& at, const TileColumns& columns, std::int64_t source_elements) {
    constexpr std::make_index_sequence<Pixels * Vectors> accumulators;
    constexpr std::make_index_sequence<Vectors> vectors;
    alignas(cache_line) float block[Pixels * Vectors * lanes];
    if (at.rows->size == 1 && at.sub->w.stride == 1)
      multiply<Pixels, Vectors, true>(accumulators, vectors, at, columns, source_elements, block);
    else
      multiply<Pixels, Vectors, false>(accumulators, vectors, at, columns, source_elements, block);
    store<Pixels, Vectors * lanes>(block, at, columns.columns);
  }

  std::int64_t source_elements_;  // of one group
  std::vector<SubCorrelation> sub_correlations_;
  std::int64_t packed_size_ = 0;
  AlignedArray<float> packed_;
  AlignedArray<float> elements_;  // of elements of two numbers: [threads, elements_size_]
  // An image of one group, or the filters of as many channels as an element has.
  std::int64_t elements_size_ = 0;
};

}  // namespace stepladder::convolution::inline STEPLADDER_ISA

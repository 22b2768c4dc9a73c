// forward and backward_data: target [channels, pixels] = weights [channels, taps] · source [taps,
// pixels], whose second operand is read from padded rows, not unfolded.
//
//   padded rows of a channel (pitch 8)   The pixels of a band of rows are numbered with the pitch
//     0 x x x x x x 0                    of the padded rows. Then the source of tap (t, u) of 16
//     0 x x x x x x 0                    pixels is one vector, t · pitch + u after that of tap
//     0 x x x x x x 0                    (0, 0). Pixels at row ends that mix two rows are dropped.
//
//   tile of the target: up to 8 channels x 3 vectors of pixels (or 1 x 8 to 6 x 4) in registers;
//   per step of K = source channels · taps 3 loads of pixels, 8 broadcasts of weights, 24 FMAs
//
// With a stride, rows and columns are sorted by their remainder, each remainder a plane of its own.
// The classes of pixels of backward_data with a stride (axis.hpp) share the padded rows.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>
#include <xsimd/xsimd.hpp>

#include "kernels/common/cpu/gemm_tile.hpp"
#include "kernels/common/cpu/partition.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/convolution/cpu/pack_filters.hpp"
#include "kernels/convolution/cpu/strided_copy.hpp"
#include "kernels/convolution/cpu/threaded_correlation.hpp"
#include "kernels/convolution/cpu/valid_range.hpp"

namespace stepladder::convolution::inline STEPLADDER_ISA {

class DirectPixelsCorrelation final : public ThreadedCorrelation {
 public:
  DirectPixelsCorrelation(const Problem& problem, int threads)
      : ThreadedCorrelation(problem, threads), panels_(ceil_div(target_channels_, max_channels)) {
    for (const Correlation& each : correlations_.all) {
      subs_.push_back({each.h, each.w, packed_size_, {}});
      packed_size_ += p_.groups * target_channels_ * source_channels_ * each.h.taps * each.w.taps;
    }
    if (subs_.empty()) return;
    rows_ = padded_axis([](const SubCorrelation& sub) { return sub.h; });
    columns_ = padded_axis([](const SubCorrelation& sub) { return sub.w; });
    pitch_ = columns_.padded(columns_.pixels);
    const std::int64_t planes = source_channels_ * rows_.remainders() * columns_.remainders();
    // The padded rows of a band stay in L2.
    const std::int64_t fitting = max_band_floats / (planes * pitch_) - rows_.padded(0);
    const std::int64_t bands =
        ceil_div(rows_.pixels, std::clamp<std::int64_t>(fitting, 1, rows_.pixels));
    band_rows_ = ceil_div(rows_.pixels, bands);
    plane_ = rows_.padded(band_rows_) * pitch_;
    channel_pitch_ = rows_.remainders() * columns_.remainders() * plane_;
    for (SubCorrelation& sub : subs_)
      for (std::int64_t t = 0; t < sub.h.taps; ++t)
        for (std::int64_t u = 0; u < sub.w.taps; ++u) {
          const std::int64_t row = sub.h.origin - rows_.origin + t;
          const std::int64_t column = sub.w.origin - columns_.origin + u;
          sub.taps.push_back(
              (row % rows_.stride * columns_.remainders() + column % columns_.stride) * plane_ +
              row / rows_.stride * pitch_ + column / columns_.stride);
        }
    packed_ = aligned_array<float>(packed_size_);
    for (int thread = 0; thread < threads; ++thread)
      bands_.push_back(panels_of_b(source_channels_ * channel_pitch_ + max_vectors(1) * lanes));
  }

 private:
  void pack(int thread, const float* weights) override {
    for (const SubCorrelation& sub : subs_) pack(sub, thread, weights);
  }

  static constexpr std::int64_t lanes = Vector::size;
  static constexpr std::int64_t max_band_floats = 96 << 10;  // 384 KiB
  // Accumulators, pixels and a weight in 32 or 16 registers. One channel needs many vectors of
  // pixels to hide the latency of the FMA.
  static constexpr std::int64_t max_channels = vector_registers == 32 ? 8 : 6;
  static constexpr std::int64_t max_vectors(std::int64_t channels) {
    constexpr std::array<std::int64_t, 8> of_32{8, 8, 6, 6, 4, 4, 3, 3};
    constexpr std::array<std::int64_t, 6> of_16{6, 5, 3, 2, 2, 2};
    const auto index = static_cast<std::size_t>(channels - 1);
    return vector_registers == 32 ? of_32[index] : of_16[index];
  }

  // forward, or one class of pixels of backward_data.
  struct SubCorrelation {
    Axis h, w;
    std::int64_t packed;             // offset of its weights: [groups][panels][K, panel's channels]
    std::vector<std::int64_t> taps;  // offset of each in the padded rows of a channel
  };

  // One dimension of the padded rows, for all sub-correlations: element i of remainder r is element
  // i · stride + r + origin of the source.
  struct PaddedAxis {
    std::int64_t source, pixels, stride;
    std::int64_t origin;  // the first element that the taps of a pixel read
    std::int64_t extent;  // and how many from there

    std::int64_t remainders() const { return std::min(stride, extent); }
    std::int64_t padded(std::int64_t count) const { return count + (extent - 1) / stride; }
  };

  template <class AxisOf>
  PaddedAxis padded_axis(AxisOf axis_of) const {
    const Axis first = axis_of(subs_.front());
    PaddedAxis all{first.source, first.pixels, first.stride, first.origin, 0};
    std::int64_t end = first.origin + first.taps;
    for (const SubCorrelation& sub : subs_) {
      const Axis axis = axis_of(sub);
      all.pixels = std::max(all.pixels, axis.pixels);
      all.origin = std::min(all.origin, axis.origin);
      end = std::max(end, axis.origin + axis.taps);
    }
    all.extent = end - all.origin;
    return all;
  }

  // Target channels of a panel: nearly the same number in all.
  Range panel(std::int64_t index) const { return partition(target_channels_, panels_, index); }

  void pack(const SubCorrelation& sub, int thread, const float* weights) {
    const std::int64_t depth = source_channels_ * sub.h.taps * sub.w.taps;
    const Range part = partition(p_.groups * panels_, threads_, thread);
    for (std::int64_t item = part.begin; item < part.end; ++item) {
      const std::int64_t group = item / panels_;
      const Range channels = panel(item % panels_);
      pack_filters(
          p_, {sub.h, sub.w}, weights, group, {0, source_channels_}, channels,
          channels.end - channels.begin,
          packed_.get() + sub.packed + (group * target_channels_ + channels.begin) * depth);
    }
  }

  // Computes one thread's rows of all images and groups, band by band.
  void correlate(int thread, const float* source, float* target) override {
    const Range part = partition(p_.batch * p_.groups * rows_.pixels, threads_, thread);
    for (std::int64_t item = part.begin; item < part.end;) {
      const std::int64_t image_group = item / rows_.pixels, row = item % rows_.pixels;
      const std::int64_t rows = std::min({band_rows_, rows_.pixels - row, part.end - item});
      float* band = bands_[static_cast<std::size_t>(thread)].get();
      copy_rows(source + image_group * source_channels_ * rows_.source * columns_.source, row, rows,
                band);
      for (const SubCorrelation& sub : subs_)
        multiply(sub, image_group, {row, std::min(row + rows, sub.h.pixels)}, band, target);
      item += rows;
    }
  }

  // Copies what the pixels of `rows` rows read of all source channels; zeros outside the source.
  void copy_rows(const float* source, std::int64_t row, std::int64_t rows, float* to) const {
    const std::int64_t plane = rows_.source * columns_.source;
    for (std::int64_t c = 0; c < source_channels_; ++c, source += plane)
      for (std::int64_t i = 0; i < rows_.remainders(); ++i)
        for (std::int64_t j = 0; j < columns_.remainders(); ++j, to += plane_) {
          const std::int64_t first = columns_.origin + j;
          const Range valid = valid_range(columns_.source, pitch_, columns_.stride, first);
          for (std::int64_t r = 0; r < rows + (rows_.extent - 1 - i) / rows_.stride; ++r) {
            const std::int64_t from = (row + r) * rows_.stride + rows_.origin + i;
            float* at = to + r * pitch_;
            if (from < 0 || from >= rows_.source || valid.begin >= valid.end) {
              fill_zeros(at, at + pitch_);
              continue;
            }
            fill_zeros(at, at + valid.begin);
            gather_strided(source + from * columns_.source + first + valid.begin * columns_.stride,
                           columns_.stride, valid.end - valid.begin, at + valid.begin);
            fill_zeros(at + valid.end, at + pitch_);
          }
        }
  }

  // It writes whole vectors, as gather_strided does. What follows is written later.
  static void fill_zeros(float* begin, const float* end) {
    for (; begin < end; begin += lanes) Vector(0.0F).store_unaligned(begin);
  }

  void multiply(const SubCorrelation& sub, std::int64_t image_group, const Range& rows,
                const float* band, float* target) const {
    if (rows.begin >= rows.end) return;
    static constexpr auto tiles = []<std::size_t... T>(std::index_sequence<T...>) {
      return std::array<Tile, sizeof...(T)>{&tile<T / 8 + 1, T % 8 + 1>...};
    }
    (std::make_index_sequence<8 * max_channels>{});
    const std::int64_t depth = source_channels_ * sub.h.taps * sub.w.taps;
    const std::int64_t target_plane = sub.h.target * sub.w.target;
    const float* weights =
        packed_.get() + sub.packed + image_group % p_.groups * target_channels_ * depth;
    target += image_group * target_channels_ * target_plane +
              (sub.h.first + rows.begin * sub.h.step) * sub.w.target + sub.w.first;
    const std::int64_t pixels = (rows.end - rows.begin - 1) * pitch_ + sub.w.pixels;
    const std::int64_t vectors = ceil_div(pixels, lanes);
    alignas(cache_line) float block[32 * lanes];
    for (std::int64_t index = 0; index < panels_; ++index) {
      const Range channels = panel(index);
      const std::int64_t height = channels.end - channels.begin;
      const std::int64_t parts = ceil_div(vectors, max_vectors(height));
      for (std::int64_t i = 0; i < parts; ++i) {
        const Range part = partition(vectors, parts, i);
        const std::int64_t width = part.end - part.begin, first = part.begin * lanes;
        tiles[static_cast<std::size_t>((height - 1) * 8 + width - 1)](
            source_channels_, channel_pitch_, sub.taps, band + first,
            weights + channels.begin * depth, block);
        store(sub, height, width * lanes, block, {first, std::min(pixels, first + width * lanes)},
              target + channels.begin * target_plane);
      }
    }
  }

  // Stores the pixels `part` of a tile, row by row. block: [channels, pitch]
  void store(const SubCorrelation& sub, std::int64_t channels, std::int64_t pitch,
             const float* block, const Range& part, float* target) const {
    for (std::int64_t row = part.begin / pitch_; row * pitch_ < part.end; ++row) {
      const std::int64_t begin = std::max(part.begin, row * pitch_);
      const std::int64_t end = std::min(part.end, row * pitch_ + sub.w.pixels);
      if (begin >= end) continue;
      const float* from = block + begin - part.begin;
      float* to = target + row * sub.h.step * sub.w.target + (begin - row * pitch_) * sub.w.step;
      for (std::int64_t i = 0; i < channels; ++i)
        scatter_strided(from + i * pitch, end - begin, sub.w.step,
                        to + i * sub.h.target * sub.w.target);
    }
  }

  // block[i, j] = sum over c and t of weights[c, t, i] · x[c · channel_pitch + taps[t] + j]
  using Tile = void (*)(std::int64_t source_channels, std::int64_t channel_pitch,
                        const std::vector<std::int64_t>& taps, const float* x, const float* weights,
                        float* block);

  // I runs over the accumulators, channel by channel, V over the vectors of pixels.
  template <std::int64_t Height, std::int64_t Width, std::size_t... I, std::size_t... V>
  [[gnu::always_inline]] static void multiply_tile(
      std::index_sequence<I...>, std::index_sequence<V...>, std::int64_t source_channels,
      std::int64_t channel_pitch, const std::vector<std::int64_t>& taps, const float* x,
      const float* weights, float* block) {
    Vector acc[] = {((void)I, Vector(0.0f))...};
    const std::int64_t *first = taps.data(), *last = first + taps.size();
    for (std::int64_t c = 0; c < source_channels; ++c, x += channel_pitch)
      for (const std::int64_t* tap = first; tap != last; ++tap, weights += Height) {
        const float* at = x + *tap;
        const Vector x_t[] = {Vector::load_unaligned(at + V * lanes)...};
        ((acc[I] = xsimd::fma(Vector(weights[I / Width]), x_t[I % Width], acc[I])), ...);
      }
    (acc[I].store_aligned(block + I * lanes), ...);
  }

  template <std::int64_t Height, std::int64_t Width>
  static void tile(std::int64_t source_channels, std::int64_t channel_pitch,
                   const std::vector<std::int64_t>& taps, const float* x, const float* weights,
                   float* block) {
    if constexpr (Width <= max_vectors(Height))  // others are never called
      multiply_tile<Height, Width>(std::make_index_sequence<Height * Width>{},
                                   std::make_index_sequence<Width>{}, source_channels,
                                   channel_pitch, taps, x, weights, block);
  }

  std::int64_t panels_;
  std::vector<SubCorrelation> subs_;
  PaddedAxis rows_{}, columns_{};
  std::int64_t band_rows_ = 0;      // of the target, at most
  std::int64_t pitch_ = 0;          // of a padded row
  std::int64_t plane_ = 0;          // padded rows of one remainder
  std::int64_t channel_pitch_ = 0;  // all planes of a channel
  std::int64_t packed_size_ = 0;
  AlignedArray<float> packed_;
  std::vector<AlignedArray<float>> bands_;  // [threads] [source channels, planes]
};

}  // namespace stepladder::convolution::inline STEPLADDER_ISA

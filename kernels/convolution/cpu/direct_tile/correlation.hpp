// forward and backward_data without unfolding: the source is read in place, and products with
// padding are skipped.
//
//   tile of the target: 14 pixels of a row x 2 vectors of channels, in registers
//
//       weights of a tap   AVX-512, per source channel and tap: 2 vector loads of weights and, per
//         w0  | w1         pixel, 1 broadcast for 2 FMAs. 28 accumulators, 2 vectors of weights and
//   x0    acc | acc        1 pixel take 31 of 32 registers.
//   x1    acc | acc
//   …     …   | …          Rows of taps above or below the source are skipped. A tap that reaches
//   x13   acc | acc        beyond a row's end updates only the pixels whose source is in the row.
//
// Lanes are channels of the target, so the finished tile is transposed when it is stored.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>
#include <xsimd/xsimd.hpp>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/partition.hpp"
#include "kernels/common/cpu/transpose.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/convolution/axis.hpp"
#include "kernels/convolution/cpu/threaded_convolution.hpp"
#include "kernels/convolution/cpu/valid_range.hpp"

namespace stepladder::convolution::inline STEPLADDER_ISA {

class DirectTileCorrelation final : public ThreadedConvolution {
 public:
  DirectTileCorrelation(const Problem& problem, int threads) : p_(problem), threads_(threads) {
    const Correlations correlations = correlations_of(p_);
    source_channels_ = correlations.source_channels;
    target_channels_ = correlations.target_channels;
    untouched_pixels_ = correlations.untouched_pixels;
    for (const Correlation& each : correlations.all) add_sub_correlation(each.h, each.w);
    packed_ = aligned_array<float>(static_cast<std::size_t>(packed_size_));
  }

  void run_phase(int phase, int thread, const Operands& operands) override {
    const bool forward = p_.direction == Direction::forward;
    const float* source = forward ? operands.x : operands.y;
    float* target = forward ? operands.y : operands.x;
    if (phase == 0) {
      for (const SubCorrelation& sub : sub_correlations_) pack(sub, thread, operands.w);
      if (untouched_pixels_) {
        const Range part = partition(p_.x_count(), threads_, thread);
        std::fill(target + part.begin, target + part.end, 0.0F);
      }
      return;
    }
    for (const SubCorrelation& sub : sub_correlations_) correlate(sub, thread, source, target);
  }

 private:
  static constexpr std::int64_t lanes = Vector::size;
  static constexpr std::int64_t max_pixels = lanes == 16 ? 14 : 6;  // 28 or 12 accumulators
  static constexpr std::int64_t panel = 2 * lanes;                  // channels of the target

  // The pixels of a row that one tile computes.
  struct Segment {
    std::int64_t first, pixels;
    std::vector<Range> valid;  // [taps of a row]: the pixels that read the source and not padding
  };

  // forward, or one class of pixels of backward_data (axis.hpp).
  struct SubCorrelation {
    Axis h, w;
    std::vector<Segment> segments;
    std::int64_t packed;  // offset of its weights: [groups, panels, source channels, taps, panel]
  };

  std::int64_t panels() const { return ceil_div(target_channels_, panel); }

  void add_sub_correlation(const Axis& h, const Axis& w) {
    SubCorrelation sub{h, w, {}, packed_size_};
    packed_size_ += p_.groups * panels() * source_channels_ * h.taps * w.taps * panel;
    const std::int64_t segments = ceil_div(w.pixels, max_pixels);
    for (std::int64_t i = 0; i < segments; ++i) {
      const Range part = partition(w.pixels, segments, i);
      Segment segment{part.begin, part.end - part.begin, {}};
      for (std::int64_t u = 0; u < w.taps; ++u)
        segment.valid.push_back(
            valid_range(w.source, segment.pixels, w.stride, part.begin * w.stride + u + w.origin));
      sub.segments.push_back(std::move(segment));
    }
    sub_correlations_.push_back(std::move(sub));
  }

  // Packs the weights; lanes without a channel get zeros.
  void pack(const SubCorrelation& sub, int thread, const float* weights) {
    const bool forward = p_.direction == Direction::forward;
    const std::int64_t plane = p_.kernel_h * p_.kernel_w;
    const std::int64_t source_pitch = forward ? plane : p_.group_in() * plane;
    const std::int64_t target_pitch = forward ? p_.group_in() * plane : plane;
    const Range part = partition(p_.groups * panels() * source_channels_, threads_, thread);
    float* to = packed_.get() + sub.packed + part.begin * sub.h.taps * sub.w.taps * panel;
    for (std::int64_t item = part.begin; item < part.end; ++item) {
      const std::int64_t group = item / source_channels_ / panels();
      const std::int64_t first = item / source_channels_ % panels() * panel;
      const std::int64_t channels = std::min(panel, target_channels_ - first);
      const float* from = weights + group * p_.group_out() * p_.group_in() * plane +
                          first * target_pitch + item % source_channels_ * source_pitch;
      for (std::int64_t t = 0; t < sub.h.taps; ++t)
        for (std::int64_t u = 0; u < sub.w.taps; ++u, to += panel) {
          const float* tap = from + (sub.h.kernel_first + t * sub.h.kernel_step) * p_.kernel_w +
                             sub.w.kernel_first + u * sub.w.kernel_step;
          for (std::int64_t i = 0; i < channels; ++i) to[i] = tap[i * target_pitch];
          std::fill(to + channels, to + panel, 0.0F);
        }
    }
  }

  // Computes one thread's rows of all images, groups and panels. The rows of a panel are
  // consecutive, so its weights stay in L2.
  void correlate(const SubCorrelation& sub, int thread, const float* source, float* target) const {
    static constexpr auto tiles = []<std::size_t... T>(std::index_sequence<T...>) {
      return std::array<Tile, sizeof...(T)>{&tile<T / 2 + 1, T % 2 + 1>...};
    }
    (std::make_index_sequence<2 * max_pixels>{});
    const Range part = partition(p_.batch * p_.groups * panels() * sub.h.pixels, threads_, thread);
    for (std::int64_t item = part.begin; item < part.end; ++item) {
      const std::int64_t row = item % sub.h.pixels, block = item / sub.h.pixels;
      const std::int64_t index = block % panels(), image_group = block / panels();
      const std::int64_t channels = std::min(panel, target_channels_ - index * panel);
      const std::int64_t source_row = row * sub.h.stride + sub.h.origin;  // of tap 0
      const std::int64_t filters = (image_group % p_.groups * panels() + index) * source_channels_;
      const std::int64_t first_plane = image_group * target_channels_ + index * panel;
      const Row at{
          .sub = &sub,
          .taps = valid_range(sub.h.source, sub.h.taps, 1, source_row),
          .source = source + image_group * source_channels_ * sub.h.source * sub.w.source +
                    source_row * sub.w.source + sub.w.origin,
          .weights = packed_.get() + sub.packed + filters * sub.h.taps * sub.w.taps * panel,
          .target = target + first_plane * sub.h.target * sub.w.target +
                    (sub.h.first + row * sub.h.step) * sub.w.target + sub.w.first,
          .channels = channels};
      const std::int64_t vectors = channels > lanes ? 2 : 1;
      for (const Segment& segment : sub.segments)
        tiles[static_cast<std::size_t>((segment.pixels - 1) * 2 + vectors - 1)](at, segment,
                                                                                source_channels_);
    }
  }

  // A row of the target for one panel of channels.
  struct Row {
    const SubCorrelation* sub;
    Range taps;            // of a column: those that read rows of the source
    const float* source;   // element of channel 0 that tap (0, 0) of pixel 0 reads; may be outside
    const float* weights;  // [source channels, taps, panel]
    float* target;         // pixel 0 of the panel's first channel
    std::int64_t channels;
  };

  using Tile = void (*)(const Row&, const Segment&, std::int64_t source_channels);

  // I runs over the accumulators, pixel by pixel, V over the vectors of channels.
  template <std::int64_t Pixels, std::int64_t Vectors, bool unit_stride, std::size_t... I,
            std::size_t... V>
  static void tile(std::index_sequence<I...>, std::index_sequence<V...>, const Row& row,
                   const Segment& segment, std::int64_t source_channels) {
    const Axis &h = row.sub->h, &w = row.sub->w;
    const std::int64_t stride = unit_stride ? 1 : w.stride;
    const float* source = row.source + segment.first * stride;
    Vector acc[] = {((void)I, Vector(0.0f))...};
    for (std::int64_t c = 0; c < source_channels; ++c) {
      for (std::int64_t t = row.taps.begin; t < row.taps.end; ++t) {
        const float* x = source + (c * h.source + t) * w.source;
        const float* weights = row.weights + (c * h.taps + t) * w.taps * panel;
        for (std::int64_t u = 0; u < w.taps; ++u, ++x, weights += panel) {
          const Vector w_u[] = {Vector::load_aligned(weights + V * lanes)...};
          const Range valid = segment.valid[static_cast<std::size_t>(u)];
          const auto first = static_cast<std::size_t>(valid.begin);
          const auto last = static_cast<std::size_t>(valid.end);
          if (first == 0 && last == Pixels)
            ((acc[I] = xsimd::fma(Vector(x[I / Vectors * stride]), w_u[I % Vectors], acc[I])), ...);
          else
            ((I / Vectors >= first && I / Vectors < last
                  ? void(acc[I] =
                             xsimd::fma(Vector(x[I / Vectors * stride]), w_u[I % Vectors], acc[I]))
                  : void()),
             ...);
        }
      }
    }
    alignas(cache_line) float block[Pixels * Vectors * lanes];
    (acc[I].store_aligned(block + I * lanes), ...);
    const std::int64_t channels = std::min(row.channels, Vectors * lanes);
    const std::int64_t plane = h.target * w.target;
    float* target = row.target + segment.first * w.step;
    if (w.step == 1) {
      transpose(block, Vectors * lanes, target, plane, Pixels, channels);
    } else {
      for (std::int64_t i = 0; i < channels; ++i, target += plane)
        for (std::int64_t j = 0; j < Pixels; ++j)
          target[j * w.step] = block[j * Vectors * lanes + i];
    }
  }

  template <std::int64_t Pixels, std::int64_t Vectors>
  static void tile(const Row& row, const Segment& segment, std::int64_t source_channels) {
    constexpr std::make_index_sequence<Pixels * Vectors> accumulators;
    constexpr std::make_index_sequence<Vectors> vectors;
    if (row.sub->w.stride == 1)
      tile<Pixels, Vectors, true>(accumulators, vectors, row, segment, source_channels);
    else
      tile<Pixels, Vectors, false>(accumulators, vectors, row, segment, source_channels);
  }

  Problem p_;
  int threads_;
  std::int64_t source_channels_ = 0, target_channels_ = 0;  // of one group
  bool untouched_pixels_ = false;  // dx has pixels that no kernel element reaches
  std::vector<SubCorrelation> sub_correlations_;
  std::int64_t packed_size_ = 0;
  AlignedArray<float> packed_;
};

}  // namespace stepladder::convolution::inline STEPLADDER_ISA

// forward and backward_data without unfolding: the source is read where it lies, and products with
// the padding are left out, not multiplied.
//
//   a tile of the target:  14 pixels of a row x 2 vectors of channels, its sums in registers
//
//     weights of a tap       per source channel and tap, for AVX-512: 2 vectors of weights and, for
//       w0 | w1              each pixel, 1 broadcast for 2 FMAs. 28 sums, 2 weights and 1 pixel
//   x0  s  | s               fill 31 of 32 registers.
//   x1  s  | s
//   …                        Rows of taps above or below the source are skipped; where taps reach
//   x13 s  | s               left or right of it, only the pixels that see the source are added to.
//
// Lanes are channels of the target, so the tile is transposed once, when it is done.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>
#include <xsimd/xsimd.hpp>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/transpose.hpp"
#include "kernels/convolution/axis.hpp"
#include "kernels/convolution/cpu/inside.hpp"
#include "kernels/convolution/cpu/steps.hpp"

namespace stepladder::convolution::inline STEPLADDER_ISA {

class DirectCorrelation final : public Steps {
 public:
  DirectCorrelation(const Problem& problem, int threads) : p_(problem), threads_(threads) {
    if (p_.direction == Direction::forward) {
      source_channels_ = p_.group_in();
      target_channels_ = p_.group_out();
      add_pass(forward_axis(p_.height, p_.out_h(), p_.kernel_h, p_.stride_h, p_.pad_h),
               forward_axis(p_.width, p_.out_w(), p_.kernel_w, p_.stride_w, p_.pad_w));
    } else {
      source_channels_ = p_.group_out();
      target_channels_ = p_.group_in();
      for (std::int64_t i = 0; i < p_.stride_h; ++i)
        for (std::int64_t j = 0; j < p_.stride_w; ++j)
          add_pass(backward_axis(p_.height, p_.out_h(), p_.kernel_h, p_.stride_h, p_.pad_h, i),
                   backward_axis(p_.width, p_.out_w(), p_.kernel_w, p_.stride_w, p_.pad_w, j));
    }
    packed_ = aligned_array<float>(static_cast<std::size_t>(packed_size_));
  }

  void step(int step, int thread, const Operands& operands) override {
    const bool forward = p_.direction == Direction::forward;
    const float* source = forward ? operands.x : operands.y;
    float* target = forward ? operands.y : operands.x;
    if (step == 0) {
      for (const Pass& pass : passes_) pack(pass, thread, operands.w);
      if (untouched_pixels_) {
        const Share share(p_.x_count(), threads_, thread);
        std::fill(target + share.first, target + share.last, 0.0F);
      }
      return;
    }
    for (const Pass& pass : passes_) correlate(pass, thread, source, target);
  }

 private:
  static constexpr std::int64_t lanes = Vector::size;
  static constexpr std::int64_t most_pixels = lanes == 16 ? 14 : 6;  // 28 of 32 or 12 of 16 sums
  static constexpr std::int64_t panel = 2 * lanes;                   // channels of the target

  // A stretch of a row's pixels: what one tile computes.
  struct Stretch {
    std::int64_t first, pixels;
    std::vector<Range> seen;  // [taps of a row]: which of its pixels see the source through the tap
  };

  struct Pass {
    Axis h, w;
    std::vector<Stretch> stretches;
    std::int64_t packed;  // its weights begin here: [groups, panels, source channels, taps, panel]
  };

  std::int64_t panels() const { return (target_channels_ + panel - 1) / panel; }

  void add_pass(const Axis& h, const Axis& w) {
    if (h.pixels == 0 || w.pixels == 0) return;
    if (h.taps == 0 || w.taps == 0) {
      untouched_pixels_ = true;
      return;
    }
    Pass pass{h, w, {}, packed_size_};
    packed_size_ += p_.groups * panels() * source_channels_ * h.taps * w.taps * panel;
    const std::int64_t stretches = (w.pixels + most_pixels - 1) / most_pixels;
    for (std::int64_t i = 0; i < stretches; ++i) {
      const Share share(w.pixels, stretches, i);
      Stretch stretch{share.first, share.last - share.first, {}};
      for (std::int64_t u = 0; u < w.taps; ++u)
        stretch.seen.push_back(
            inside(w.source, stretch.pixels, w.stride, share.first * w.stride + u + w.origin));
      pass.stretches.push_back(std::move(stretch));
    }
    passes_.push_back(std::move(pass));
  }

  // Weights of one pass; lanes without a channel get zeros.
  void pack(const Pass& pass, int thread, const float* weights) {
    const bool forward = p_.direction == Direction::forward;
    const std::int64_t plane = p_.kernel_h * p_.kernel_w;
    const std::int64_t source_pitch = forward ? plane : p_.group_in() * plane;
    const std::int64_t target_pitch = forward ? p_.group_in() * plane : plane;
    const Share share(p_.groups * panels() * source_channels_, threads_, thread);
    float* to = packed_.get() + pass.packed + share.first * pass.h.taps * pass.w.taps * panel;
    for (std::int64_t item = share.first; item < share.last; ++item) {
      const std::int64_t group = item / source_channels_ / panels();
      const std::int64_t first = item / source_channels_ % panels() * panel;
      const std::int64_t channels = std::min(panel, target_channels_ - first);
      const float* from = weights + group * p_.group_out() * p_.group_in() * plane +
                          first * target_pitch + item % source_channels_ * source_pitch;
      for (std::int64_t t = 0; t < pass.h.taps; ++t)
        for (std::int64_t u = 0; u < pass.w.taps; ++u, to += panel) {
          const float* tap = from + (pass.h.kernel_first + t * pass.h.kernel_step) * p_.kernel_w +
                             pass.w.kernel_first + u * pass.w.kernel_step;
          for (std::int64_t i = 0; i < channels; ++i) to[i] = tap[i * target_pitch];
          std::fill(to + channels, to + panel, 0.0F);
        }
    }
  }

  // One thread's rows: of all images, groups and panels; rows of one panel follow each other, so
  // that its weights stay in the second-level cache.
  void correlate(const Pass& pass, int thread, const float* source, float* target) const {
    static constexpr auto tiles = []<std::size_t... T>(std::index_sequence<T...>) {
      return std::array<Tile, sizeof...(T)>{&tile<T / 2 + 1, T % 2 + 1>...};
    }(std::make_index_sequence<2 * most_pixels>{});
    const Share share(p_.batch * p_.groups * panels() * pass.h.pixels, threads_, thread);
    for (std::int64_t item = share.first; item < share.last; ++item) {
      const std::int64_t row = item % pass.h.pixels, block = item / pass.h.pixels;
      const std::int64_t index = block % panels(), image_group = block / panels();
      const std::int64_t channels = std::min(panel, target_channels_ - index * panel);
      const std::int64_t source_row = row * pass.h.stride + pass.h.origin;  // of tap 0
      const std::int64_t filters = (image_group % p_.groups * panels() + index) * source_channels_;
      const std::int64_t planes = image_group * target_channels_ + index * panel;  // before it
      const Row at{
          .pass = &pass,
          .taps = inside(pass.h.source, pass.h.taps, 1, source_row),
          .source = source + image_group * source_channels_ * pass.h.source * pass.w.source +
                    source_row * pass.w.source + pass.w.origin,
          .weights = packed_.get() + pass.packed + filters * pass.h.taps * pass.w.taps * panel,
          .target = target + planes * pass.h.target * pass.w.target +
                    (pass.h.first + row * pass.h.step) * pass.w.target + pass.w.first,
          .channels = channels};
      const std::int64_t vectors = channels > lanes ? 2 : 1;
      for (const Stretch& stretch : pass.stretches)
        tiles[static_cast<std::size_t>((stretch.pixels - 1) * 2 + vectors - 1)](at, stretch,
                                                                                source_channels_);
    }
  }

  // A row of the target for one panel of channels.
  struct Row {
    const Pass* pass;
    Range taps;            // those of a column that reach rows of the source
    const float* source;   // what tap (0, 0) of pixel 0 reads of channel 0, if it is inside
    const float* weights;  // [source channels, taps, panel]
    float* target;         // pixel 0 of the panel's first channel
    std::int64_t channels;
  };

  using Tile = void (*)(const Row&, const Stretch&, std::int64_t source_channels);

  // I runs over the sums, pixel by pixel, V over the vectors of channels.
  template <std::int64_t Pixels, std::int64_t Vectors, bool unit_stride, std::size_t... I,
            std::size_t... V>
  static void tile(std::index_sequence<I...>, std::index_sequence<V...>, const Row& row,
                   const Stretch& stretch, std::int64_t source_channels) {
    const Axis &h = row.pass->h, &w = row.pass->w;
    const std::int64_t stride = unit_stride ? 1 : w.stride;
    const float* source = row.source + stretch.first * stride;
    Vector sum[] = {((void)I, Vector(0.0f))...};
    for (std::int64_t c = 0; c < source_channels; ++c) {
      for (std::int64_t t = row.taps.first; t < row.taps.last; ++t) {
        const float* x = source + (c * h.source + t) * w.source;
        const float* weights = row.weights + (c * h.taps + t) * w.taps * panel;
        for (std::int64_t u = 0; u < w.taps; ++u, ++x, weights += panel) {
          const Vector w_u[] = {Vector::load_aligned(weights + V * lanes)...};
          const Range seen = stretch.seen[static_cast<std::size_t>(u)];
          const auto first = static_cast<std::size_t>(seen.first);
          const auto last = static_cast<std::size_t>(seen.last);
          if (first == 0 && last == Pixels)
            ((sum[I] = xsimd::fma(Vector(x[I / Vectors * stride]), w_u[I % Vectors], sum[I])), ...);
          else
            ((I / Vectors >= first && I / Vectors < last
                  ? void(sum[I] =
                             xsimd::fma(Vector(x[I / Vectors * stride]), w_u[I % Vectors], sum[I]))
                  : void()),
             ...);
        }
      }
    }
    alignas(cache_line) float block[Pixels * Vectors * lanes];
    (sum[I].store_aligned(block + I * lanes), ...);
    const std::int64_t channels = std::min(row.channels, Vectors * lanes);
    const std::int64_t plane = h.target * w.target;
    float* target = row.target + stretch.first * w.step;
    if (w.step == 1) {
      transpose(block, Vectors * lanes, target, plane, Pixels, channels);
    } else {
      for (std::int64_t i = 0; i < channels; ++i, target += plane)
        for (std::int64_t j = 0; j < Pixels; ++j)
          target[j * w.step] = block[j * Vectors * lanes + i];
    }
  }

  template <std::int64_t Pixels, std::int64_t Vectors>
  static void tile(const Row& row, const Stretch& stretch, std::int64_t source_channels) {
    constexpr std::make_index_sequence<Pixels * Vectors> sums;
    constexpr std::make_index_sequence<Vectors> vectors;
    if (row.pass->w.stride == 1)
      tile<Pixels, Vectors, true>(sums, vectors, row, stretch, source_channels);
    else
      tile<Pixels, Vectors, false>(sums, vectors, row, stretch, source_channels);
  }

  Problem p_;
  int threads_;
  std::int64_t source_channels_ = 0, target_channels_ = 0;  // of one group
  bool untouched_pixels_ = false;  // pixels of dx that no kernel element reaches
  std::vector<Pass> passes_;       // one, or one for each class of pixels
  std::int64_t packed_size_ = 0;
  AlignedArray<float> packed_;
};

}  // namespace stepladder::convolution::inline STEPLADDER_ISA

// forward and backward_data on AMX, without unfolding, on operands rounded to bf16 or quantized to
// int8.
//
//   tile of A     16 neighbouring positions x 32 source channels, or 64 of int8 (source_lines.hpp);
//                 a tap is an offset. A thread makes them for an image at a time.
//   tile of B     these channels x 16 target channels, of a tap: packed weights
//   tile of sums  transposed when it is stored, as channels are the outer dimension of the target
#pragma once

#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/narrow/amx_kernel.hpp"
#include "kernels/convolution/cpu/direct_amx/source_lines.hpp"
#include "kernels/convolution/cpu/threaded_correlation.hpp"

namespace stepladder::convolution {

// Element: PairOfSlots or QuadOfSlots.
template <class Element>
class AmxCorrelation final : public ThreadedCorrelation {
 public:
  // Throws Unsupported where offsets of weights do not fit 32 bits.
  AmxCorrelation(const Problem& problem, int threads) : ThreadedCorrelation(problem, threads) {
    if (p_.w_count() > std::numeric_limits<std::int32_t>::max())
      throw Unsupported("supports at most 2^31 - 1 weights");
    for (const Correlation& each : correlations_.all) {
      subs_.push_back(sub_of(each));
      lines_bytes_ = std::max(lines_bytes_, subs_.back().lines.bytes());
    }
    packed_ = aligned_array<std::byte>(packed_size_);
    lines_ = aligned_array<std::byte>(threads_ * lines_bytes_);
    if constexpr (is_quantized)
      channels_.resize(static_cast<std::size_t>(p_.groups * panels() * panel));
  }

  // Packs one thread's part of the weights. Quantized: of an output channel with a step of its own.
  void pack(int thread, const float* weights) override {
    for (const Sub& sub : subs_) pack(sub, thread, weights);
  }
  void correlate(int thread, const float* source, float* target) override {
    const narrow::AmxTiles tiles;
    for (const Sub& sub : subs_) correlate(sub, thread, source, target);
  }

 private:
  using Lines = SourceLines<Element>;
  static constexpr bool is_quantized = std::is_same_v<Element, QuadOfSlots>;
  static constexpr std::int64_t panel = 2 * narrow::tile_side;  // target channels
  static constexpr std::int64_t panel_bytes = 2 * narrow::tile_bytes;

  struct Sub {
    Axis h, w;
    Lines lines;
    std::int64_t steps;   // groups x taps
    std::int64_t packed;  // offset of its weights: [groups of channels][panels][steps][2] tiles
    // Of a step's weights of a target channel: offsets from the first, and which of them exist;
    // [steps][numbers][16].
    std::vector<std::int32_t> weights;
    std::vector<__mmask16> exist;
    // Of a strided target: offsets of the 16 positions of a tile, [tiles][16].
    std::vector<std::int32_t> targets;
  };

  Sub sub_of(const Correlation& of) {
    Sub sub{of.h, of.w, Lines(of, source_channels_), 0, packed_size_, {}, {}, {}};
    const std::int64_t taps = std::ssize(sub.lines.taps());
    sub.steps = sub.lines.groups() * taps;
    packed_size_ += p_.groups * panels() * sub.steps * panel_bytes;
    for (std::int64_t step = 0; step < sub.steps; ++step)
      for (std::int64_t number = 0; number < Element::numbers; ++number) {
        unsigned exist = 0;
        for (std::int64_t i = 0; i < narrow::tile_side; ++i) {
          const std::int64_t slot =
              step / taps * Lines::slots_of_group + Element::numbers * i + number;
          if (slot < sub.lines.slots()) exist |= 1U << i;
          sub.weights.push_back(
              static_cast<std::int32_t>(weight_of(of, sub.lines.slot(slot, step % taps))));
        }
        sub.exist.push_back(static_cast<__mmask16>(exist));
      }
    if (of.h.step > 1 || of.w.step > 1) set_targets(sub);
    return sub;
  }

  std::int64_t weight_of(const Correlation& of, const typename Lines::Slot& slot) const {
    const std::int64_t channels = slot.channel * (forward_ ? 1 : p_.group_in());
    return (channels * p_.kernel_h + of.h.kernel_first + slot.h * of.h.kernel_step) * p_.kernel_w +
           of.w.kernel_first + slot.w * of.w.kernel_step;
  }

  static void set_targets(Sub& sub) {
    for (const Positions::Pixels& pixels : sub.lines.tiles()) {
      std::int64_t pixel = pixels.first;
      for (std::int64_t i = 0; i < narrow::tile_side; ++i) {
        sub.targets.push_back(static_cast<std::int32_t>(
            pixel / sub.w.pixels * sub.h.step * sub.w.target + pixel % sub.w.pixels * sub.w.step));
        pixel += pixels.stored >> i & 1;
      }
    }
  }

  std::int64_t panels() const { return ceil_div(target_channels_, panel); }

  STEPLADDER_DOT_TARGET void pack(const Sub& sub, int thread, const float* weights) {
    const std::int64_t kernel = p_.kernel_h * p_.kernel_w, filter = p_.group_in() * kernel,
                       distance = forward_ ? filter : kernel;  // between target channels
    const Range part = partition(p_.groups * panels() * panel, threads_, thread, narrow::tile_side);
    for (std::int64_t tile = part.begin; tile < part.end; tile += narrow::tile_side) {
      const std::int64_t block = tile / panel, first = block % panels() * panel + tile % panel;
      const float* from = weights + block / panels() * p_.group_out() * filter + first * distance;
      const std::int64_t exist = std::min(narrow::tile_side, target_channels_ - first);
      if constexpr (is_quantized)
        for (std::int64_t i = 0; i < exist; ++i)
          channels_[static_cast<std::size_t>(tile + i)] = channel_of(from + i * filter, filter);
      std::byte* to = packed_.get() + sub.packed + block * sub.steps * panel_bytes +
                      tile % panel / narrow::tile_side * narrow::tile_bytes;
      for (std::int64_t step = 0; step < sub.steps; ++step, to += panel_bytes) {
        __m512i v[narrow::tile_side];
        for (std::int64_t i = 0; i < narrow::tile_side; ++i)
          v[i] = i < exist ? weights_of(sub, step, from + i * distance, tile + i)
                           : _mm512_setzero_si512();
        narrow::transpose_groups(v);
        narrow::store_tile(v, to);
      }
    }
  }

  // Of a quantized target channel.
  struct Channel {
    narrow::Step step{};
    std::int32_t offset = 0;  // -128 times the sum of its weights
  };

  STEPLADDER_DOT_TARGET static Channel channel_of(const float* filter, std::int64_t count) {
    const narrow::Step step = narrow::step_of(narrow::largest_magnitude(filter, count));
    __m512i sum = _mm512_setzero_si512();
    for (std::int64_t i = 0; i < count; i += narrow::lanes)
      sum = _mm512_add_epi32(
          sum, narrow::quantized(_mm512_maskz_loadu_ps(narrow::first_lanes(count - i), filter + i),
                                 _mm512_set1_ps(step.inverse)));
    return {step, -narrow::quantized_zero * _mm512_reduce_add_epi32(sum)};
  }

  // 16 elements of a step, of one target channel.
  STEPLADDER_DOT_INLINE __m512i weights_of(const Sub& sub, std::int64_t step, const float* from,
                                           std::int64_t channel) const {
    __m512 values[Element::numbers];
    for (std::int64_t j = 0; j < Element::numbers; ++j) {
      const auto index = static_cast<std::size_t>(step * Element::numbers + j);
      values[j] = _mm512_mask_i32gather_ps(
          _mm512_setzero_ps(), sub.exist[index],
          _mm512_loadu_si512(&sub.weights[index * narrow::tile_side]), from, sizeof(float));
    }
    if constexpr (is_quantized) {
      const float inverse = channels_[static_cast<std::size_t>(channel)].step.inverse;
      __m512i four[Element::numbers];
      for (std::int64_t j = 0; j < Element::numbers; ++j)
        four[j] = narrow::quantized(values[j], _mm512_set1_ps(inverse));
      return narrow::quads(four);
    } else {
      return Element{}(values);
    }
  }

  void correlate(const Sub& sub, int thread, const float* source, float* target) const {
    const std::int64_t source_size = source_channels_ * sub.h.source * sub.w.source,
                       plane = sub.h.target * sub.w.target;
    std::byte* lines = lines_.get() + thread * lines_bytes_;
    narrow::Step step{};  // of an image and group
    const Range part = partition(p_.batch * p_.groups * panels(), threads_, thread);
    for (std::int64_t item = part.begin; item < part.end; ++item) {
      const std::int64_t image = item / panels(), index = item % panels();
      if (item == part.begin || index == 0) {
        const float* from = source + image * source_size;
        if constexpr (is_quantized)
          step = narrow::step_of(narrow::largest_magnitude(from, source_size));
        sub.lines.fill({from, nullptr}, element_of(step), lines);
      }
      multiply({.sub = &sub,
                .lines = lines,
                .weights = packed_.get() + sub.packed +
                           (image % p_.groups * panels() + index) * sub.steps * panel_bytes,
                .of_channels = is_quantized ? &channels_[static_cast<std::size_t>(
                                                  (image % p_.groups * panels() + index) * panel)]
                                            : nullptr,
                .step = step.size,
                .channels = std::min(panel, target_channels_ - index * panel),
                .target = target + (image * target_channels_ + index * panel) * plane +
                          sub.h.first * sub.w.target + sub.w.first,
                .plane = plane});
    }
  }

  static Element element_of(const narrow::Step& step) {
    if constexpr (is_quantized)
      return {step.inverse};
    else
      return {};
  }

  // The pixels of an image, for a panel of channels.
  struct Panel {
    const Sub* sub;
    const std::byte *lines, *weights;
    const Channel* of_channels;
    float step;
    std::int64_t channels;
    float* target;  // of the first channel
    std::int64_t plane;
  };

  static void multiply(const Panel& at) {
    const std::int64_t count = std::ssize(at.sub->lines.tiles());
    const bool two_columns = at.channels > narrow::tile_side;
    for (std::int64_t tile = 0; tile < count; tile += 2)
      if (tile + 1 < count)
        two_columns ? tiles<2, 2>(at, tile) : tiles<2, 1>(at, tile);
      else
        two_columns ? tiles<1, 2>(at, tile) : tiles<1, 1>(at, tile);
  }

  template <int height, int width>
  STEPLADDER_AMX_TARGET static void tiles(const Panel& at, std::int64_t tile) {
    using narrow::AmxTiles, narrow::tile_bytes;
    AmxTiles::zero();
    const std::byte *group = at.lines + tile * tile_bytes, *b = at.weights;
    for (std::int64_t g = 0; g < at.sub->lines.groups(); ++g, group += at.sub->lines.group_bytes())
      for (const std::int64_t tap : at.sub->lines.taps()) {
        AmxTiles::add<typename Element::Dot, height, width>(group + tap, tile_bytes, b, tile_bytes);
        b += panel_bytes;
      }
    alignas(64) std::byte sums[4][tile_bytes];
    AmxTiles::store<height, width>(sums[0]);
    for (std::int64_t i = 0; i < height; ++i)
      for (std::int64_t j = 0; j < width; ++j)
        store(at, tile + i, j * narrow::tile_side, sums[2 * i + j]);
  }

  // Stores the positions of a tile that are pixels, for channels from `first` on.
  STEPLADDER_DOT_TARGET static void store(const Panel& at, std::int64_t tile, std::int64_t first,
                                          const std::byte* sums) {
    const auto index = static_cast<std::size_t>(tile);
    const Positions::Pixels& pixels = at.sub->lines.tiles()[index];
    __m512i v[narrow::tile_side];
#pragma GCC unroll 16
    for (std::int64_t i = 0; i < narrow::tile_side; ++i)
      v[i] = _mm512_load_si512(sums + i * narrow::vector_bytes);
    narrow::transpose_groups(v);
    const std::int64_t channels = std::min(narrow::tile_side, at.channels - first);
    if constexpr (is_quantized)
      for (std::int64_t i = 0; i < channels; ++i) {
        const Channel& channel = at.of_channels[first + i];
        const __m512 sums_of =
            _mm512_cvtepi32_ps(_mm512_add_epi32(v[i], _mm512_set1_epi32(channel.offset)));
        v[i] = _mm512_castps_si512(_mm512_mul_ps(_mm512_mul_ps(sums_of, _mm512_set1_ps(at.step)),
                                                 _mm512_set1_ps(channel.step.size)));
      }
    float* to = at.target + first * at.plane;
    if (!at.sub->targets.empty()) {
      const __m512i offsets = _mm512_loadu_si512(&at.sub->targets[index * narrow::tile_side]);
      for (std::int64_t i = 0; i < channels; ++i, to += at.plane)
        _mm512_mask_i32scatter_epi32(to, pixels.stored, offsets, v[i], sizeof(float));
      return;
    }
    to += pixels.first;
    const __mmask16 mask = narrow::first_lanes(pixels.count);
    for (std::int64_t i = 0; i < channels; ++i, to += at.plane)
      _mm512_mask_storeu_epi32(to, mask, _mm512_maskz_compress_epi32(pixels.stored, v[i]));
  }

  std::vector<Sub> subs_;
  std::int64_t packed_size_ = 0, lines_bytes_ = 0;
  AlignedArray<std::byte> packed_;
  AlignedArray<std::byte> lines_;  // [threads, lines_bytes_]
  std::vector<Channel> channels_;  // quantized: [groups, panels, panel]
};

}  // namespace stepladder::convolution

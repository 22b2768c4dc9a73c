// forward and backward_data on AMX, without unfolding: the source as planes of pairs of channels
// (planes.hpp), which a thread makes for an image at a time.
//
//   tile of A   16 target channels x 16 pairs of source channels, of one tap: packed weights
//   tile of B   16 pairs of source channels x 16 neighbouring positions, read in the planes: its
//               rows are a plane apart, and a tap is an offset
//
// With few source channels, pairs of (channel, tap) take the place of pairs of channels.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/narrow/amx_kernel.hpp"
#include "kernels/convolution/cpu/direct_amx/bf16_numbers.hpp"
#include "kernels/convolution/cpu/planes.hpp"
#include "kernels/convolution/cpu/threaded_correlation.hpp"

namespace stepladder::convolution {

class AmxCorrelation final : public ThreadedCorrelation {
 public:
  AmxCorrelation(const Problem& problem, int threads) : ThreadedCorrelation(problem, threads) {
    for (const Correlation& each : correlations_.all) {
      subs_.push_back(sub_of(each));
      planes_size_ = std::max(planes_size_, round_up(subs_.back().planes_size, narrow::lanes));
    }
    packed_ = aligned_array<std::byte>(static_cast<std::size_t>(packed_size_));
    planes_ = aligned_array<std::uint32_t>(static_cast<std::size_t>(threads_ * planes_size_));
  }

 private:
  static constexpr std::int64_t panel = 2 * narrow::tile_side;  // target channels
  static constexpr std::int64_t panel_bytes = 2 * narrow::tile_bytes;
  static constexpr std::int64_t few_channels = 8;

  struct Sub {
    Axis h, w;
    Planes planes;
    std::int64_t groups;  // of 16 elements
    std::int64_t steps;   // groups x taps
    std::int64_t planes_size;
    std::int64_t packed;  // offset of its weights: [groups of channels][panels][steps][2] tiles
    // Of the weights of a step: where those of its 16 first and of its 16 second numbers are, from
    // that of the first source channel and tap; [steps][2][16]. And which of them exist.
    std::vector<std::int32_t> weights;
    std::vector<__mmask16> exist;
    // Of strided targets: offsets of the 16 positions of a vector, [vectors][16].
    std::vector<std::int32_t> targets;
  };

  Sub sub_of(const Correlation& of) {
    const bool unfolds = source_channels_ < few_channels;
    Sub sub{
        of.h, of.w, Planes(of, source_channels_, unfolds, unfolds, 2), 0, 0, 0, packed_size_, {},
        {},   {}};
    sub.groups = ceil_div(sub.planes.elements(), narrow::tile_side);
    sub.planes_size = sub.planes.size(sub.groups * narrow::tile_side);
    sub.steps = sub.groups * std::ssize(sub.planes.taps());
    packed_size_ += p_.groups * panels() * sub.steps * panel_bytes;
    const auto taps_w = unfolds ? 1 : of.w.taps;
    const std::int64_t channel = p_.kernel_h * p_.kernel_w * (forward_ ? 1 : p_.group_in());
    for (std::int64_t step = 0; step < sub.steps; ++step)
      for (std::int64_t i = 0; i < 2; ++i) {
        unsigned exist = 0;
        for (std::int64_t j = 0; j < narrow::tile_side; ++j) {
          const std::int64_t taps = std::ssize(sub.planes.taps()), tap = step % taps;
          const std::int64_t index = 2 * (step / taps * narrow::tile_side + j) + i;
          const Planes::Slot slot = sub.planes.slot(index);
          const std::int64_t t = slot.h + tap / taps_w, u = slot.w + tap % taps_w;
          if (index < sub.planes.slots()) exist |= 1U << j;
          sub.weights.push_back(static_cast<std::int32_t>(
              slot.channel * channel + (of.h.kernel_first + t * of.h.kernel_step) * p_.kernel_w +
              of.w.kernel_first + u * of.w.kernel_step));
        }
        sub.exist.push_back(static_cast<__mmask16>(exist));
      }
    if (of.h.step > 1 || of.w.step > 1) set_targets(sub);
    return sub;
  }

  static void set_targets(Sub& sub) {
    for (const Planes::Pixels& pixels : sub.planes.vectors()) {
      std::int64_t pixel = pixels.first;
      for (std::int64_t i = 0; i < narrow::lanes; ++i) {
        sub.targets.push_back(static_cast<std::int32_t>(
            pixel / sub.w.pixels * sub.h.step * sub.w.target + pixel % sub.w.pixels * sub.w.step));
        pixel += pixels.stored >> i & 1;
      }
    }
  }

  std::int64_t panels() const { return ceil_div(target_channels_, panel); }

  void pack(int thread, const float* weights) override {
    for (const Sub& sub : subs_) pack(sub, thread, weights);
  }

  // Rows of target channels that do not exist are 0.
  STEPLADDER_DOT_TARGET void pack(const Sub& sub, int thread, const float* weights) const {
    const std::int64_t kernel = p_.kernel_h * p_.kernel_w, filter = p_.group_in() * kernel,
                       row = forward_ ? filter : kernel;
    const Range part = partition(p_.groups * panels() * sub.steps, threads_, thread);
    std::byte* to = packed_.get() + sub.packed + part.begin * panel_bytes;
    for (std::int64_t item = part.begin; item < part.end; ++item) {
      const std::int64_t block = item / sub.steps, first = block % panels() * panel;
      const std::int64_t step = item % sub.steps;
      const float* from = weights + block / panels() * p_.group_out() * filter + first * row;
      const std::int32_t* index = &sub.weights[static_cast<std::size_t>(step * 2 * narrow::lanes)];
      const __mmask16* exist = &sub.exist[static_cast<std::size_t>(step * 2)];
      for (std::int64_t i = 0; i < panel; ++i, to += narrow::vector_bytes) {
        __m512 numbers[2];
        for (std::int64_t j = 0; j < 2; ++j)
          numbers[j] = _mm512_mask_i32gather_ps(
              _mm512_setzero_ps(), first + i < target_channels_ ? exist[j] : __mmask16{0},
              _mm512_loadu_si512(index + j * narrow::lanes), from + i * row, sizeof(float));
        _mm512_store_si512(to, Bf16Numbers{}(numbers));
      }
    }
  }

  void correlate(int thread, const float* source, float* target) override {
    const narrow::AmxTiles tiles;
    for (const Sub& sub : subs_) correlate(sub, thread, source, target);
  }

  void correlate(const Sub& sub, int thread, const float* source, float* target) const {
    const std::int64_t source_size = source_channels_ * sub.h.source * sub.w.source,
                       plane = sub.h.target * sub.w.target;
    std::uint32_t* planes = planes_.get() + thread * planes_size_;
    const Range part = partition(p_.batch * p_.groups * panels(), threads_, thread);
    for (std::int64_t item = part.begin; item < part.end; ++item) {
      const std::int64_t of_image = item / panels(), index = item % panels();
      if (item == part.begin || index == 0) {
        const float* image = source + of_image * source_size;
        sub.planes.fill({&image, 1}, Bf16Numbers{}, planes, sub.planes_size);
      }
      const Panel at{.sub = &sub,
                     .planes = planes,
                     .weights = packed_.get() + sub.packed +
                                (of_image % p_.groups * panels() + index) * sub.steps * panel_bytes,
                     .channels = std::min(panel, target_channels_ - index * panel),
                     .target = target + (of_image * target_channels_ + index * panel) * plane +
                               sub.h.first * sub.w.target + sub.w.first,
                     .plane = plane};
      multiply(at);
    }
  }

  // The pixels of one image, for one panel of channels.
  struct Panel {
    const Sub* sub;
    const std::uint32_t* planes;
    const std::byte* weights;
    std::int64_t channels;
    float* target;  // of the first channel
    std::int64_t plane;
  };

  static void multiply(const Panel& at) {
    const std::int64_t count = std::ssize(at.sub->planes.vectors());
    const bool two_rows = at.channels > narrow::tile_side;
    for (std::int64_t vector = 0; vector < count; vector += 2)
      if (vector + 1 < count)
        two_rows ? tiles<2, 2>(at, vector) : tiles<1, 2>(at, vector);
      else
        two_rows ? tiles<2, 1>(at, vector) : tiles<1, 1>(at, vector);
  }

  template <int height, int width>
  STEPLADDER_AMX_TARGET static void tiles(const Panel& at, std::int64_t vector) {
    __asm__ volatile("" ::: "memory");  // GCC's intrinsics do not say that they read memory
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    const Planes& planes = at.sub->planes;
    const std::int64_t* taps = planes.taps().data();
    const std::int64_t row = planes.stride() * narrow::group_bytes,
                       count = std::ssize(planes.taps());
    const std::byte* a = at.weights;
    const std::uint32_t* group = at.planes + vector * narrow::lanes;
    for (std::int64_t g = 0; g < at.sub->groups; ++g, group += narrow::tile_side * planes.stride())
      for (std::int64_t tap = 0; tap < count; ++tap, a += panel_bytes) {
        const std::uint32_t* b = group + taps[tap];
        _tile_loadd(4, a, narrow::vector_bytes);
        _tile_loadd(6, b, row);
        narrow::AmxTiles::add<narrow::DotBf16, 0, 0>();
        if constexpr (width > 1) {
          _tile_loadd(7, b + narrow::lanes, row);
          narrow::AmxTiles::add<narrow::DotBf16, 0, 1>();
        }
        if constexpr (height > 1) {
          _tile_loadd(5, a + narrow::tile_bytes, narrow::vector_bytes);
          narrow::AmxTiles::add<narrow::DotBf16, 1, 0>();
          if constexpr (width > 1) narrow::AmxTiles::add<narrow::DotBf16, 1, 1>();
        }
      }
    alignas(64) float sums[panel][width * narrow::lanes];
    constexpr std::int64_t sums_row = sizeof(sums[0]);
    _tile_stored(0, sums[0], sums_row);
    if constexpr (width > 1) _tile_stored(1, sums[0] + narrow::lanes, sums_row);
    if constexpr (height > 1) _tile_stored(2, sums[narrow::tile_side], sums_row);
    if constexpr (height > 1 && width > 1)
      _tile_stored(3, sums[narrow::tile_side] + narrow::lanes, sums_row);
    __asm__ volatile("" ::: "memory");
    for (std::int64_t j = 0; j < width; ++j)
      store(at, vector + j, sums[0] + j * narrow::lanes, width * narrow::lanes);
  }

  // The positions of a vector that are pixels, for all channels; sums are `row` apart.
  STEPLADDER_DOT_TARGET static void store(const Panel& at, std::int64_t vector, const float* sums,
                                          std::int64_t row) {
    const auto index = static_cast<std::size_t>(vector);
    const Planes::Pixels& pixels = at.sub->planes.vectors()[index];
    float* to = at.target;
    if (at.sub->targets.empty()) {
      const __mmask16 mask = narrow::first_lanes(std::popcount(pixels.stored));
      to += pixels.first;
      for (std::int64_t i = 0; i < at.channels; ++i, sums += row, to += at.plane)
        _mm512_mask_storeu_ps(to, mask,
                              _mm512_maskz_compress_ps(pixels.stored, _mm512_load_ps(sums)));
    } else {
      const __m512i offsets = _mm512_loadu_si512(&at.sub->targets[index * narrow::lanes]);
      for (std::int64_t i = 0; i < at.channels; ++i, sums += row, to += at.plane)
        _mm512_mask_i32scatter_ps(to, pixels.stored, offsets, _mm512_load_ps(sums), sizeof(float));
    }
  }

  std::vector<Sub> subs_;
  std::int64_t packed_size_ = 0;
  AlignedArray<std::byte> packed_;
  std::int64_t planes_size_ = 0;
  AlignedArray<std::uint32_t> planes_;  // [threads, planes_size_]
};

}  // namespace stepladder::convolution

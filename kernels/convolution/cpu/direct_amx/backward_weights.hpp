// backward_weights on AMX, without unfolding. An element is two images, which count as one.
//
//   tile of A   16 input channels x 16 neighbouring positions, read in the planes of x (planes.hpp):
//               its rows are a plane apart, and a tap is an offset
//   tile of B   16 positions x 16 output channels: dy transposed, 0 between two rows
//
// The sums of a tap are kept between a few pairs of images and the next ones. Threads divide the
// pairs and add their sums at the end; if there are fewer pairs than threads, they divide the sums.
// With few input channels, (channel, tap) take the place of channels.
#pragma once

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/narrow/amx_kernel.hpp"
#include "kernels/convolution/cpu/direct_amx/bf16_numbers.hpp"
#include "kernels/convolution/cpu/planes.hpp"
#include "kernels/convolution/cpu/threaded_convolution.hpp"

namespace stepladder::convolution {

class AmxBackwardWeights final : public ThreadedConvolution {
 public:
  AmxBackwardWeights(const Problem& problem, int threads)
      : p_(problem),
        threads_(threads),
        planes_(forward(), p_.group_in(), p_.group_in() < few_channels,
                p_.group_in() < few_channels, 1),
        steps_(std::ssize(planes_.vectors())),
        slot_panels_(ceil_div(planes_.slots(), panel)),
        panels_(ceil_div(p_.group_out(), panel)),
        blocks_(std::ssize(planes_.taps()) * slot_panels_ * panels_),
        x_size_(round_up(planes_.size(slot_panels_ * panel), narrow::lanes)),
        dy_size_(2 * panels_ * steps_ * narrow::tile_bytes),
        pairs_at_once_(
            std::clamp<std::int64_t>(bytes_at_once / (4 * x_size_ + dy_size_), 1, pairs())),
        parts_(pairs() < threads ? 1 : threads) {
    x_ =
        aligned_array<std::uint32_t>(static_cast<std::size_t>(threads_ * pairs_at_once_ * x_size_));
    dy_ = aligned_array<std::byte>(static_cast<std::size_t>(threads_ * pairs_at_once_ * dy_size_));
    sums_ = aligned_array<float>(static_cast<std::size_t>(parts_ * p_.groups * blocks_ * block));
  }

  void run_phase(int phase, int thread, const Operands& operands) override {
    if (phase == 0)
      add_products(thread, operands);
    else
      add_parts(thread, operands.w);
  }

 private:
  static constexpr std::int64_t panel = 2 * narrow::tile_side;
  static constexpr std::int64_t block = panel * panel;  // sums: [2][2] tiles
  static constexpr std::int64_t few_channels = 8;
  static constexpr std::int64_t bytes_at_once = 1 << 19;  // a part of L2

  std::int64_t pairs() const { return ceil_div(p_.batch, std::int64_t{2}); }
  std::int64_t pixels() const { return p_.out_h() * p_.out_w(); }
  Correlation forward() const {
    return {forward_axis(p_.height, p_.out_h(), p_.kernel_h, p_.stride_h, p_.pad_h),
            forward_axis(p_.width, p_.out_w(), p_.kernel_w, p_.stride_w, p_.pad_w)};
  }

  // The channels of a group in the images of a pair; null: there is no second image.
  std::array<const float*, 2> images(const float* of, std::int64_t size, std::int64_t pair,
                                     std::int64_t group) const {
    const float* first = of + (2 * pair * p_.groups + group) * size;
    return {first, 2 * pair + 1 < p_.batch ? first + p_.groups * size : nullptr};
  }

  void add_products(int thread, const Operands& o) const {
    const narrow::AmxTiles tiles;
    const bool by_pairs = parts_ > 1 || threads_ == 1;
    const Range part = by_pairs ? partition(pairs(), threads_, thread) : Range{0, pairs()},
                blocks = by_pairs ? Range{0, blocks_} : partition(blocks_, threads_, thread);
    std::uint32_t* x = x_.get() + thread * pairs_at_once_ * x_size_;
    std::byte* dy = dy_.get() + thread * pairs_at_once_ * dy_size_;
    for (std::int64_t group = 0; group < p_.groups; ++group) {
      float* sums = sums_.get() + ((by_pairs ? thread * p_.groups : 0) + group) * blocks_ * block;
      for (std::int64_t pair = part.begin; pair < part.end; pair += pairs_at_once_) {
        const std::int64_t count = std::min(pairs_at_once_, part.end - pair);
        for (std::int64_t i = 0; i < count; ++i) {
          planes_.fill(images(o.x, p_.group_in() * p_.height * p_.width, pair + i, group),
                       Bf16Numbers{}, x + i * x_size_, x_size_);
          transpose(images(o.y, p_.group_out() * pixels(), pair + i, group), dy + i * dy_size_);
        }
        for (std::int64_t i = blocks.begin; i < blocks.end; ++i)
          add_block(i, x, dy, count, pair == part.begin, sums + i * block);
      }
    }
  }

  // Tiles of dy of a pair: [tiles of channels][steps].
  STEPLADDER_DOT_TARGET void transpose(const std::array<const float*, 2>& dy, std::byte* to) const {
    for (std::int64_t first = 0; first < panels_ * panel; first += narrow::tile_side)
      for (const Planes::Pixels& at : planes_.vectors()) {
        const __mmask16 mask = narrow::first_lanes(std::popcount(at.stored));
        __m512i v[narrow::tile_side];
        for (std::int64_t i = 0; i < narrow::tile_side; ++i) {
          __m512 values[2];
          for (std::size_t j = 0; j < 2; ++j)
            values[j] = dy[j] == nullptr || first + i >= p_.group_out()
                            ? _mm512_setzero_ps()
                            : _mm512_maskz_expand_ps(
                                  at.stored, _mm512_maskz_loadu_ps(
                                                 mask, dy[j] + (first + i) * pixels() + at.first));
          v[i] = Bf16Numbers{}(values);
        }
        narrow::transpose_groups(v);
        narrow::store_tile(v, to);
        to += narrow::tile_bytes;
      }
  }

  // Block [tap][panel of slots][panel of output channels].
  void add_block(std::int64_t index, const std::uint32_t* x, const std::byte* dy,
                 std::int64_t pairs, bool is_first, float* sums) const {
    const std::int64_t slots = index / panels_ % slot_panels_ * panel,
                       channels = index % panels_ * panel;
    const std::int64_t tap =
        planes_.taps()[static_cast<std::size_t>(index / panels_ / slot_panels_)];
    const Block of{x + slots * planes_.stride() + tap,
                   dy + channels / narrow::tile_side * steps_ * narrow::tile_bytes, pairs, is_first,
                   sums};
    const bool two_rows = planes_.slots() - slots > narrow::tile_side,
               two_columns = p_.group_out() - channels > narrow::tile_side;
    if (two_rows)
      two_columns ? add<2, 2>(of) : add<2, 1>(of);
    else
      two_columns ? add<1, 2>(of) : add<1, 1>(of);
  }

  struct Block {
    const std::uint32_t* x;
    const std::byte* dy;
    std::int64_t pairs;
    bool is_first;
    float* sums;
  };

  template <int height, int width>
  STEPLADDER_AMX_TARGET void add(const Block& of) const {
    __asm__ volatile("" ::: "memory");  // GCC's intrinsics do not say that they read memory
    constexpr std::int64_t row = panel * sizeof(float);
    float *const sums = of.sums, *const below = sums + narrow::tile_side * panel;
    if (of.is_first) {
      _tile_zero(0);
      _tile_zero(1);
      _tile_zero(2);
      _tile_zero(3);
    } else {
      _tile_loadd(0, sums, row);
      if constexpr (width > 1) _tile_loadd(1, sums + narrow::lanes, row);
      if constexpr (height > 1) _tile_loadd(2, below, row);
      if constexpr (height > 1 && width > 1) _tile_loadd(3, below + narrow::lanes, row);
    }
    const std::int64_t a_row = planes_.stride() * narrow::group_bytes;
    for (std::int64_t pair = 0; pair < of.pairs; ++pair) {
      const std::uint32_t* a = of.x + pair * x_size_;
      const std::byte* b = of.dy + pair * dy_size_;
      for (std::int64_t s = 0; s < steps_; ++s, a += narrow::lanes, b += narrow::tile_bytes) {
        _tile_loadd(4, a, a_row);
        _tile_loadd(6, b, narrow::vector_bytes);
        narrow::AmxTiles::add<narrow::DotBf16, 0, 0>();
        if constexpr (width > 1) {
          _tile_loadd(7, b + steps_ * narrow::tile_bytes, narrow::vector_bytes);
          narrow::AmxTiles::add<narrow::DotBf16, 0, 1>();
        }
        if constexpr (height > 1) {
          _tile_loadd(5, a + narrow::tile_side * planes_.stride(), a_row);
          narrow::AmxTiles::add<narrow::DotBf16, 1, 0>();
          if constexpr (width > 1) narrow::AmxTiles::add<narrow::DotBf16, 1, 1>();
        }
      }
    }
    _tile_stored(0, sums, row);
    if constexpr (width > 1) _tile_stored(1, sums + narrow::lanes, row);
    if constexpr (height > 1) _tile_stored(2, below, row);
    if constexpr (height > 1 && width > 1) _tile_stored(3, below + narrow::lanes, row);
    __asm__ volatile("" ::: "memory");
  }

  // Adds the sums of all parts for this thread's rows of blocks, one of each slot, and stores them.
  STEPLADDER_DOT_TARGET void add_parts(int thread, float* dw) const {
    const std::int64_t kernel = p_.kernel_h * p_.kernel_w, filter = p_.group_in() * kernel;
    const std::int64_t taps_w = p_.group_in() < few_channels ? 1 : p_.kernel_w;
    const __m512i filters =
        _mm512_mullo_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                           _mm512_set1_epi32(static_cast<int>(filter)));
    const std::int64_t of_part = p_.groups * blocks_ * block;
    const Range part = partition(p_.groups * blocks_ * panel, threads_, thread);
    for (std::int64_t row = part.begin; row < part.end; ++row) {
      const std::int64_t index = row / panel % blocks_, group = row / panel / blocks_;
      const std::int64_t slot = index / panels_ % slot_panels_ * panel + row % panel;
      if (slot >= planes_.slots()) continue;
      const auto [channel, slot_h, slot_w] = planes_.slot(slot);
      const std::int64_t tap = index / panels_ / slot_panels_;
      const std::int64_t at =
          channel * kernel + (slot_h + tap / taps_w) * p_.kernel_w + slot_w + tap % taps_w;
      for (std::int64_t i = 0; i < panel; i += narrow::lanes) {
        const std::int64_t o = index % panels_ * panel + i;
        const float* from = sums_.get() + row * panel + i;
        __m512 sum = _mm512_load_ps(from);
        for (std::int64_t j = 1; j < parts_; ++j)
          sum = _mm512_add_ps(sum, _mm512_load_ps(from + j * of_part));
        _mm512_mask_i32scatter_ps(dw + (group * p_.group_out() + o) * filter + at,
                                  narrow::first_lanes(p_.group_out() - o), filters, sum,
                                  sizeof(float));
      }
    }
  }

  Problem p_;
  int threads_;
  Planes planes_;
  std::int64_t steps_;  // of 16 positions
  std::int64_t slot_panels_, panels_;
  std::int64_t blocks_;   // of a group
  std::int64_t x_size_;   // elements of a pair
  std::int64_t dy_size_;  // bytes of a pair
  std::int64_t pairs_at_once_;
  std::int64_t parts_;             // of the pairs
  AlignedArray<std::uint32_t> x_;  // [threads, pairs at once, x_size_]
  AlignedArray<std::byte> dy_;     // [threads, pairs at once, dy_size_]
  AlignedArray<float> sums_;       // [parts, groups, blocks, block]
};

}  // namespace stepladder::convolution

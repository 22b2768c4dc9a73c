// backward_weights on AMX, without unfolding. An element holds a number of each of two images; the
// sum over k adds both.
//
//   tile of A   16 output channels x 16 neighbouring positions of dy, 0 between two rows
//   tile of B   these positions x 16 input channels, of a tap: lines of x (source_lines.hpp)
//
// The sums of a tap are kept between a part of the positions, whose tiles stay in L1 for all taps,
// and the next part. Threads divide the pairs of images and add their sums at the end; where pairs
// are fewer than threads, they divide the sums.
//
// A NaN or an infinity in x may reach dw of other taps and channels: between two rows it is
// multiplied by 0.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/narrow/amx_kernel.hpp"
#include "kernels/convolution/cpu/direct_amx/source_lines.hpp"
#include "kernels/convolution/cpu/threaded_convolution.hpp"

namespace stepladder::convolution {

class AmxBackwardWeights final : public ThreadedConvolution {
 public:
  AmxBackwardWeights(const Problem& problem, int threads)
      : p_(problem),
        threads_(threads),
        lines_(forward_correlation(p_), p_.group_in()),
        steps_(std::ssize(lines_.tiles())),
        panels_(ceil_div(p_.group_out(), panel)),
        slot_panels_(ceil_div(lines_.groups(), std::int64_t{2})),
        blocks_(panels_ * slot_panels_ * std::ssize(lines_.taps())),
        dy_bytes_(2 * panels_ * steps_ * narrow::tile_bytes),
        pairs_at_once_(std::clamp(steps_at_once / steps_, std::int64_t{1}, pairs_of_images())),
        parts_(pairs_of_images() < threads ? 1 : threads) {
    const std::int64_t count = threads_ * pairs_at_once_;
    x_ = aligned_array<std::byte>(count * lines_.bytes());
    dy_ = aligned_array<std::byte>(count * dy_bytes_);
    sums_ = aligned_array<float>(parts_ * p_.groups * blocks_ * block);
  }

  void run_phase(int phase, int thread, const Operands& operands) override {
    if (phase == 0)
      add_products(thread, operands);
    else
      add_parts(thread, operands.w);
  }

 private:
  using Lines = SourceLines<PairOfImages>;
  static constexpr std::int64_t panel = 2 * narrow::tile_side;
  static constexpr std::int64_t block = panel * panel;  // sums
  static constexpr std::int64_t steps_at_once = 8;      // 2 KiB each of dy and of x

  std::int64_t pairs_of_images() const { return ceil_div(p_.batch, std::int64_t{2}); }
  std::int64_t pixels() const { return p_.out_h() * p_.out_w(); }

  // A group's channels, of `size` floats, in the images of a pair; null: there is no second image.
  Lines::Images images(const float* of, std::int64_t size, std::int64_t pair,
                       std::int64_t group) const {
    const float* first = of + (2 * pair * p_.groups + group) * size;
    return {first, 2 * pair + 1 < p_.batch ? first + p_.groups * size : nullptr};
  }

  void add_products(int thread, const Operands& o) const {
    const narrow::AmxTiles tiles;
    const bool by_pairs = parts_ == threads_;
    const Range all{0, pairs_of_images()},
        part = by_pairs ? partition(all.end, threads_, thread) : all,
        blocks = by_pairs ? Range{0, blocks_} : partition(blocks_, threads_, thread);
    std::byte* x = x_.get() + thread * pairs_at_once_ * lines_.bytes();
    std::byte* dy = dy_.get() + thread * pairs_at_once_ * dy_bytes_;
    for (std::int64_t group = 0; group < p_.groups; ++group) {
      float* sums = sums_.get() + ((by_pairs ? thread * p_.groups : 0) + group) * blocks_ * block;
      for (std::int64_t pair = part.begin; pair < part.end; pair += pairs_at_once_) {
        const std::int64_t count = std::min(pairs_at_once_, part.end - pair);
        for (std::int64_t i = 0; i < count; ++i) {
          lines_.fill(images(o.x, p_.group_in() * p_.height * p_.width, pair + i, group), {},
                      x + i * lines_.bytes());
          pack_dy(images(o.y, p_.group_out() * pixels(), pair + i, group), dy + i * dy_bytes_);
        }
        const std::int64_t parts_of_steps = ceil_div(steps_, steps_at_once);
        for (std::int64_t j = 0; j < parts_of_steps; ++j)
          for (std::int64_t i = blocks.begin; i < blocks.end; ++i)
            add_block(i, x, dy, count, partition(steps_, parts_of_steps, j),
                      pair == part.begin && j == 0, sums + i * block);
      }
    }
  }

  // [tiles of channels][steps]; what does not exist is 0.
  STEPLADDER_DOT_TARGET void pack_dy(const Lines::Images& dy, std::byte* to) const {
    for (std::int64_t channel = 0; channel < panels_ * panel; channel += narrow::tile_side)
      for (const Positions::Pixels& at : lines_.tiles()) {
        const __mmask16 mask = narrow::first_lanes(at.count);
        for (std::int64_t i = 0; i < narrow::tile_side; ++i, to += narrow::vector_bytes) {
          const std::int64_t from = (channel + i) * pixels() + at.first;
          const __mmask16 exist = channel + i < p_.group_out() ? mask : __mmask16{0};
          const __m512 first = _mm512_maskz_loadu_ps(exist, dy[0] + from),
                       second = dy[1] == nullptr ? _mm512_setzero_ps()
                                                 : _mm512_maskz_loadu_ps(exist, dy[1] + from);
          _mm512_store_si512(
              to, _mm512_maskz_expand_epi32(at.stored, narrow::bf16_pairs(first, second)));
        }
      }
  }

  // Block [panel of output channels][panel of slots][tap]: [2 tiles][2 tiles].
  void add_block(std::int64_t index, const std::byte* x, const std::byte* dy, std::int64_t pairs,
                 Range steps, bool is_first, float* sums) const {
    const std::int64_t taps = std::ssize(lines_.taps()), slots = index / taps % slot_panels_,
                       channels = index / taps / slot_panels_;
    const Block of{dy + (channels * 2 * steps_ + steps.begin) * narrow::tile_bytes,
                   x + slots * 2 * lines_.group_bytes() + steps.begin * narrow::tile_bytes +
                       lines_.taps()[static_cast<std::size_t>(index % taps)],
                   pairs,
                   steps.end - steps.begin,
                   is_first,
                   sums};
    const bool two_rows = p_.group_out() - channels * panel > narrow::tile_side,
               two_columns = lines_.groups() - slots * 2 > 1;
    if (two_rows)
      two_columns ? add<2, 2>(of) : add<2, 1>(of);
    else
      two_columns ? add<1, 2>(of) : add<1, 1>(of);
  }

  struct Block {
    const std::byte *dy, *x;
    std::int64_t pairs, steps;
    bool is_first;
    float* sums;
  };

  template <int height, int width>
  STEPLADDER_AMX_TARGET void add(const Block& of) const {
    using narrow::AmxTiles, narrow::tile_bytes;
    auto* const sums = reinterpret_cast<std::byte*>(of.sums);
    if (of.is_first)
      AmxTiles::zero();
    else
      AmxTiles::load<height, width>(sums);
    for (std::int64_t pair = 0; pair < of.pairs; ++pair) {
      const std::byte *a = of.dy + pair * dy_bytes_, *b = of.x + pair * lines_.bytes();
      for (std::int64_t s = 0; s < of.steps; ++s, a += tile_bytes, b += tile_bytes)
        AmxTiles::add<narrow::DotBf16, height, width>(a, steps_ * tile_bytes, b,
                                                      lines_.group_bytes());
    }
    AmxTiles::store<height, width>(sums);
  }

  // Adds the sums of all parts for this thread's rows of tiles, one for 16 slots of an output
  // channel, and stores them.
  STEPLADDER_DOT_TARGET void add_parts(int thread, float* dw) const {
    const std::int64_t filter = p_.group_in() * p_.kernel_h * p_.kernel_w,
                       taps = std::ssize(lines_.taps()), of_part = p_.groups * blocks_ * block;
    const Range part = partition(p_.groups * blocks_ * 2 * panel, threads_, thread);
    for (std::int64_t row = part.begin; row < part.end; ++row) {
      const std::int64_t of_block = row % (2 * panel), index = row / (2 * panel) % blocks_,
                         group = row / (2 * panel) / blocks_;
      const std::int64_t tile = of_block / narrow::tile_side,
                         o = index / taps / slot_panels_ * panel + tile / 2 * narrow::tile_side +
                             of_block % narrow::tile_side,
                         first = (index / taps % slot_panels_ * 2 + tile % 2) * narrow::tile_side;
      if (o >= p_.group_out() || first >= lines_.slots()) continue;
      const float* from = sums_.get() + row * narrow::tile_side;
      __m512 sum = _mm512_load_ps(from);
      for (std::int64_t j = 1; j < parts_; ++j)
        sum = _mm512_add_ps(sum, _mm512_load_ps(from + j * of_part));
      // Slots are as far apart as channels, or (channel, tap).
      const auto [channel, h, w] = lines_.slot(first, index % taps);
      _mm512_mask_i32scatter_ps(dw + (group * p_.group_out() + o) * filter +
                                    (channel * p_.kernel_h + h) * p_.kernel_w + w,
                                narrow::first_lanes(lines_.slots() - first),
                                narrow::multiples(taps), sum, sizeof(float));
    }
  }

  Problem p_;
  int threads_;
  Lines lines_;
  std::int64_t steps_;  // of 16 positions
  std::int64_t panels_, slot_panels_;
  std::int64_t blocks_;    // of a group
  std::int64_t dy_bytes_;  // of a pair
  std::int64_t pairs_at_once_;
  std::int64_t parts_;          // of the pairs
  AlignedArray<std::byte> x_;   // [threads, pairs at once] lines
  AlignedArray<std::byte> dy_;  // [threads, pairs at once, dy_bytes_]
  AlignedArray<float> sums_;    // [parts, groups, blocks, block]
};

}  // namespace stepladder::convolution

// The transforms of dy and dw in backward_weights by Winograd's method.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/gemm_tile.hpp"
#include "kernels/common/cpu/transpose.hpp"
#include "kernels/convolution/convolution.hpp"
#include "kernels/convolution/cpu/winograd/tiles.hpp"

namespace stepladder::convolution::inline STEPLADDER_ISA {

// Transformed tiles of dy for one panel of output channels; a panel has the columns of the register
// tile. Each thread has its own object.
template <int pairs, int kernel>
class WinogradGradientTiles {
 public:
  using Transform = WinogradTransform<pairs>;
  static constexpr std::int64_t lanes = Vector::size;
  static constexpr std::int64_t tile = Transform::tile, positions = tile * tile;
  static constexpr std::int64_t outputs = tile - kernel + 1;  // pixels along a tile of dy
  using Gemm = GemmTile<6, vector_registers == 32 ? 4 : 2>;
  static constexpr std::int64_t panel = Gemm::columns;

  WinogradGradientTiles(const Problem& problem, const TileGrid& grid)
      : p_(problem),
        columns_(grid.columns()),
        pitch_(grid.block_tiles() * panel + lanes),
        window_(aligned_array<float>(grid.block_rows() * columns_ * outputs * outputs * lanes)),
        tiles_(aligned_array<float>(positions * pitch_)) {
    // Lanes without a channel are transformed and multiplied too: no denormal numbers in them.
    std::fill_n(window_.get(), grid.block_rows() * columns_ * outputs * outputs * lanes, 0.0F);
    std::fill_n(tiles_.get(), positions * pitch_, 0.0F);
  }

  // Transforms a block. dy points to the group's first channel in the block's first image.
  void transform(const float* dy, const TileGrid::Block& block, std::int64_t panel_index) {
    const std::int64_t first = panel_index * panel, plane = p_.out_h() * p_.out_w();
    for (std::int64_t v = 0; v < panel && first + v < p_.group_out(); v += lanes)
      for (std::int64_t n = 0; n < block.images; ++n)
        transform_image(dy + (n * p_.out_channels + first + v) * plane,
                        std::min(lanes, p_.group_out() - first - v), block,
                        tiles_.get() + n * block.rows * columns_ * panel + v);
  }

  // [tiles of the block, panel] of one position.
  const float* matrix(std::int64_t position) const { return tiles_.get() + position * pitch_; }

  // Computes dw of up to one vector of output channels and one input channel of their group from
  // the products [positions, lanes], whose positions are `pitch` floats apart.
  static void combine(const Problem& p, const float* products, std::int64_t pitch,
                      std::int64_t out_channel, std::int64_t in_channel, std::int64_t count,
                      float* dw) {
    constexpr std::int64_t taps = kernel * kernel;
    alignas(cache_line) float half[kernel * tile * lanes], filter[taps * lanes];
    for (std::int64_t b = 0; b < tile; ++b)
      Transform::template combine<kernel>(products + b * pitch, tile * pitch, half + b * lanes,
                                          tile * lanes);
    for (std::int64_t r = 0; r < kernel; ++r)
      Transform::template combine<kernel>(half + r * tile * lanes, lanes,
                                          filter + r * kernel * lanes, lanes);
    transpose(filter, lanes, dw + (out_channel * p.group_in() + in_channel) * taps,
              p.group_in() * taps, taps, count);
  }

 private:
  // Transforms one vector of channels of one image; dy: [channels, h, w].
  void transform_image(const float* dy, std::int64_t channels, const TileGrid::Block& block,
                       float* to) {
    alignas(cache_line) float half[tile * outputs * lanes];
    const std::int64_t window_row = columns_ * outputs * lanes;
    load_window(dy, channels, p_.out_h(), p_.out_w(), block.first_row * outputs, 0,
                block.rows * outputs, columns_ * outputs, window_.get());
    for (std::int64_t i = 0; i < block.rows; ++i)
      for (std::int64_t j = 0; j < columns_; ++j, to += panel) {
        const float* from = window_.get() + i * outputs * window_row + j * outputs * lanes;
        for (std::int64_t b = 0; b < outputs; ++b)
          Transform::template evaluate<outputs>(from + b * lanes, window_row, half + b * lanes,
                                                outputs * lanes);
        for (std::int64_t a = 0; a < tile; ++a)
          Transform::template evaluate<outputs>(half + a * outputs * lanes, lanes,
                                                to + a * tile * pitch_, pitch_);
      }
  }

  Problem p_;
  std::int64_t columns_, pitch_;  // tiles across an image; pitch of a position (WinogradSource)
  AlignedArray<float> window_;    // [rows, columns, lanes] of dy
  AlignedArray<float> tiles_;     // [positions, tiles, panel]
};

}  // namespace stepladder::convolution::inline STEPLADDER_ISA

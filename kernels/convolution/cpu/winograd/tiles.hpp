// Transforms the tiles of images (tile_grid.hpp):
//
//   image [channels, height, width]                       in place
//     -> window [rows, columns, lanes]                    one vector of channels on the lanes, with
//                                                         zeros for padding
//       -> transformed tiles [positions, tiles, channels] one matrix per position of a tile
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/convolution/cpu/tile_grid.hpp"
#include "kernels/convolution/cpu/winograd/transform.hpp"

namespace stepladder::convolution::inline STEPLADDER_ISA {

// Transforms blocks of images into tiles. Each thread has its own object; the tiles may be shared.
template <int pairs>
class WinogradSource {
 public:
  using Transform = WinogradTransform<pairs>;
  static constexpr std::int64_t lanes = Vector::size;
  static constexpr std::int64_t tile = Transform::tile, positions = tile * tile;

  struct Image {
    std::int64_t channels, height, width;  // channels: the maximum
    std::int64_t top, left;  // first row and column of the first tile: minus the padding
  };

  // Tiles begin `outputs` pixels apart and overlap.
  WinogradSource(const Image& image, const TileGrid& grid, std::int64_t outputs)
      : image_(image),
        columns_(grid.columns()),
        outputs_(outputs),
        window_columns_((columns_ - 1) * outputs + tile),
        row_(round_up(image.channels, lanes)),
        pitch_(grid.block_tiles() * row_ + lanes),
        window_(aligned_array<float>(((grid.block_rows() - 1) * outputs + tile) * window_columns_ *
                                     lanes)),
        half_(aligned_array<float>(tile * window_columns_ * lanes)) {
    // Lanes without a channel are transformed too: denormal numbers in them would cost up to 20x.
    std::fill_n(window_.get(), ((grid.block_rows() - 1) * outputs + tile) * window_columns_ * lanes,
                0.0F);
  }

  // Floats of the tiles of any block: [positions, tiles of the block, channels].
  std::int64_t tiles_size() const { return positions * pitch_; }

  // Transforms the first `channels` channels of a block. `source` is the first channel of the
  // block's first image; images are image_pitch apart.
  void transform(const float* source, std::int64_t image_pitch, const TileGrid::Block& block,
                 std::int64_t channels, float* tiles) {
    const std::int64_t rows = (block.rows - 1) * outputs_ + tile;
    for (std::int64_t n = 0; n < block.images; ++n, source += image_pitch)
      for (std::int64_t c = 0; c < channels; c += lanes) {
        load_window(source + c * image_.height * image_.width, std::min(lanes, channels - c),
                    image_.height, image_.width, image_.top + block.first_row * outputs_,
                    image_.left, rows, window_columns_, window_.get());
        for (std::int64_t i = 0; i < block.rows; ++i)
          transform_row(window_.get() + i * outputs_ * window_columns_ * lanes,
                        tiles + (n * block.rows + i) * columns_ * row_ + c);
      }
  }

  // The matrices [tiles of the block, channels] of the positions are pitch() floats apart, their
  // rows row() floats.
  std::int64_t pitch() const { return pitch_; }
  std::int64_t row() const { return row_; }

 private:
  // Transforms a row of tiles for one vector of channels: first the columns of the window, which
  // adjacent tiles share, then the rows of each tile.
  void transform_row(const float* window, float* tiles) {
    const std::int64_t window_row = window_columns_ * lanes;
    for (std::int64_t j = 0; j < window_row; j += lanes)
      Transform::source(window + j, window_row, half_.get() + j, window_row);
    for (std::int64_t j = 0; j < columns_; ++j, tiles += row_)
      for (std::int64_t i = 0; i < tile; ++i)
        Transform::source(half_.get() + i * window_row + j * outputs_ * lanes, lanes,
                          tiles + i * tile * pitch_, pitch_);
  }

  Image image_;
  std::int64_t columns_, outputs_, window_columns_;
  // Floats of one tile, of one position. A position has one cache line more than its tiles need:
  // otherwise all positions of a tile could map to the same cache set.
  std::int64_t row_, pitch_;
  AlignedArray<float> window_;  // [rows, window_columns, lanes]
  AlignedArray<float> half_;    // [tile, window_columns, lanes]
};

}  // namespace stepladder::convolution::inline STEPLADDER_ISA

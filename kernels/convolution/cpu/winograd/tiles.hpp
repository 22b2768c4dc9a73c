// Splits images into tiles and transforms the tiles:
//
//   image [channels, height, width]                       in place
//     -> window [rows, columns, lanes]                    one vector of channels on the lanes, with
//                                                         zeros for padding
//       -> transformed tiles [positions, tiles, channels] one matrix per position of a tile
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/transpose.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/convolution/cpu/valid_range.hpp"
#include "kernels/convolution/cpu/winograd/transform.hpp"

namespace stepladder::convolution::inline STEPLADDER_ISA {

// Covers each image by tiles of outputs x outputs pixels, grouped into blocks: some whole images,
// or some rows of tiles of one image.
class TileGrid {
 public:
  struct Block {
    std::int64_t first_image, images, first_row, rows;
  };

  // All images in one block.
  TileGrid(std::int64_t images, std::int64_t height, std::int64_t width, std::int64_t outputs)
      : images_(images),
        rows_(ceil_div(height, outputs)),
        columns_(ceil_div(width, outputs)),
        block_rows_(rows_),
        block_images_(images) {}

  // Each block reads weights, or reads and writes accumulators, for every pair of an input and an
  // output channel, so many pairs need large blocks. With few pairs the block's matrices should
  // stay in L2. There is at least one block per thread.
  TileGrid(std::int64_t images, std::int64_t height, std::int64_t width, std::int64_t outputs,
           std::int64_t channel_pairs, int threads)
      : TileGrid(images, height, width, outputs) {
    constexpr std::int64_t pairs_per_tile = 512, min_tiles = 48, max_l2_tiles = 192;
    const std::int64_t max_tiles = std::min(
        std::clamp(channel_pairs / pairs_per_tile, min_tiles, max_l2_tiles), tiles() / threads);
    block_rows_ = equal_parts(rows_, max_tiles / columns_);
    block_images_ = block_rows_ < rows_ ? 1 : equal_parts(images, max_tiles / (rows_ * columns_));
  }

  std::int64_t tiles() const { return images_ * rows_ * columns_; }
  std::int64_t columns() const { return columns_; }        // tiles across an image
  std::int64_t block_rows() const { return block_rows_; }  // at most
  std::int64_t block_tiles() const { return block_images_ * block_rows_ * columns_; }  // at most
  std::int64_t blocks() const { return blocks_down() * blocks_along(); }

  Block block(std::int64_t index) const {
    const std::int64_t image = index / blocks_down() * block_images_;
    const std::int64_t row = index % blocks_down() * block_rows_;
    return {image, std::min(block_images_, images_ - image), row,
            std::min(block_rows_, rows_ - row)};
  }

 private:
  // The size of nearly equal parts that make up `whole`, at most `max` and at least 1.
  static std::int64_t equal_parts(std::int64_t whole, std::int64_t max) {
    const std::int64_t limit = std::clamp<std::int64_t>(max, 1, whole);
    const std::int64_t parts = ceil_div(whole, limit);
    return ceil_div(whole, parts);
  }

  std::int64_t blocks_down() const { return ceil_div(rows_, block_rows_); }
  std::int64_t blocks_along() const { return ceil_div(images_, block_images_); }

  std::int64_t images_, rows_, columns_, block_rows_, block_images_;
};

// window[i, j, c] = image[c, top + i, left + j] for c < channels, or zero outside the image. Other
// lanes are not changed.
inline void load_window(const float* image, std::int64_t channels, std::int64_t height,
                        std::int64_t width, std::int64_t top, std::int64_t left, std::int64_t rows,
                        std::int64_t columns, float* window) {
  constexpr std::int64_t lanes = Vector::size;
  const Range valid = valid_range(width, columns, 1, left);
  for (std::int64_t i = 0; i < rows; ++i, window += columns * lanes) {
    const std::int64_t row = top + i;
    if (row < 0 || row >= height) {
      std::fill_n(window, columns * lanes, 0.0F);
      continue;
    }
    std::fill_n(window, valid.begin * lanes, 0.0F);
    transpose(image + row * width + left + valid.begin, height * width,
              window + valid.begin * lanes, lanes, channels, valid.end - valid.begin);
    std::fill_n(window + valid.end * lanes, (columns - valid.end) * lanes, 0.0F);
  }
}

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
        window_(aligned_array<float>(static_cast<std::size_t>(
            ((grid.block_rows() - 1) * outputs + tile) * window_columns_ * lanes))),
        half_(aligned_array<float>(static_cast<std::size_t>(tile * window_columns_ * lanes))) {}

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

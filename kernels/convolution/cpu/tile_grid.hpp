// The tiles of transformed convolutions (winograd, fft), and how they are loaded from images.
#pragma once

#include <algorithm>
#include <cstdint>
#include <xsimd/xsimd.hpp>

#include "kernels/common/cpu/simd.hpp"
#include "kernels/common/cpu/transpose.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/convolution/cpu/valid_range.hpp"

namespace stepladder::convolution::inline STEPLADDER_ISA {

// The tiles of a batch, `rows` x `columns` of each image, grouped into blocks: some whole images,
// or some rows of tiles of one image.
class TileGrid {
 public:
  struct Block {
    std::int64_t first_image, images, first_row, rows;
  };

  // All images in one block.
  TileGrid(std::int64_t images, std::int64_t rows, std::int64_t columns)
      : images_(images), rows_(rows), columns_(columns), block_rows_(rows), block_images_(images) {}

  // Each block reads weights, or reads and writes accumulators, for every pair of an input and an
  // output channel, so many pairs need large blocks. With few pairs the block's matrices should
  // stay in L2. There is at least one block per thread.
  TileGrid(std::int64_t images, std::int64_t rows, std::int64_t columns, std::int64_t channel_pairs,
           int threads)
      : TileGrid(images, rows, columns) {
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

}  // namespace stepladder::convolution::inline STEPLADDER_ISA

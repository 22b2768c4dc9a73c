// How a Winograd convolution cuts images into tiles, and what it makes of them:
//
//   image [channels, height, width]                         as it lies in memory
//     -> window [rows, columns, lanes]                      16 channels on the lanes of AVX-512, zeros
//                                                           for padding
//       -> transformed tiles [positions, tiles, channels]   one matrix for each position of a tile
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/transpose.hpp"
#include "kernels/convolution/cpu/inside.hpp"
#include "kernels/convolution/cpu/winograd/transform.hpp"

namespace stepladder::convolution::inline STEPLADDER_ISA {

// Tiles of outputs x outputs pixels cover every image. They are worked on in blocks: of some whole
// images, or of some rows of tiles of one image.
class TileGrid {
 public:
  struct Block {
    std::int64_t first_image, images, first_row, rows;
  };

  // All images in one block.
  TileGrid(std::int64_t images, std::int64_t height, std::int64_t width, std::int64_t outputs)
      : images_(images),
        rows_((height + outputs - 1) / outputs),
        columns_((width + outputs - 1) / outputs),
        block_rows_(rows_),
        block_images_(images) {}

  // Each block reads weights, or reads and writes sums, for every pair of an input and an output
  // channel: many pairs call for large blocks. With few, a block's matrices stay in the second-level
  // cache. Each of the threads should find a block.
  TileGrid(std::int64_t images, std::int64_t height, std::int64_t width, std::int64_t outputs,
           std::int64_t channel_pairs, int threads)
      : TileGrid(images, height, width, outputs) {
    const std::int64_t most_tiles =
        std::min(std::clamp<std::int64_t>(channel_pairs / 512, 48, 192), tiles() / threads);
    block_rows_ = equal_parts(rows_, most_tiles / columns_);
    block_images_ = block_rows_ < rows_ ? 1 : equal_parts(images, most_tiles / (rows_ * columns_));
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
  // The size of parts of at most `most`, but at least 1, as equal as can be, that make up `whole`.
  static std::int64_t equal_parts(std::int64_t whole, std::int64_t most) {
    const std::int64_t limit = std::clamp<std::int64_t>(most, 1, whole);
    const std::int64_t parts = (whole + limit - 1) / limit;
    return (whole + parts - 1) / parts;
  }

  std::int64_t blocks_down() const { return (rows_ + block_rows_ - 1) / block_rows_; }
  std::int64_t blocks_along() const { return (images_ + block_images_ - 1) / block_images_; }

  std::int64_t images_, rows_, columns_, block_rows_, block_images_;
};

// window[i, j, c] = image[c, top + i, left + j], or zero outside the image, for c < channels; the
// lanes beyond stay as they are.
inline void load_window(const float* image, std::int64_t channels, std::int64_t height, std::int64_t width,
                 std::int64_t top, std::int64_t left, std::int64_t rows, std::int64_t columns,
                 float* window) {
  constexpr std::int64_t lanes = Vector::size;
  const Range seen = inside(width, columns, 1, left);
  for (std::int64_t i = 0; i < rows; ++i, window += columns * lanes) {
    const std::int64_t row = top + i;
    if (row < 0 || row >= height) {
      std::fill_n(window, columns * lanes, 0.0F);
      continue;
    }
    std::fill_n(window, seen.first * lanes, 0.0F);
    transpose(image + row * width + left + seen.first, height * width,
                    window + seen.first * lanes, lanes, channels, seen.last - seen.first);
    std::fill_n(window + seen.last * lanes, (columns - seen.last) * lanes, 0.0F);
  }
}

// Turns blocks of images into transformed tiles. Each thread has one of its own; the tiles may be
// shared.
template <int pairs>
class WinogradSource {
 public:
  using Transform = WinogradTransform<pairs>;
  static constexpr std::int64_t lanes = Vector::size;
  static constexpr std::int64_t tile = Transform::tile, positions = tile * tile;

  struct Image {
    std::int64_t channels, height, width;  // channels: at most
    std::int64_t top, left;                // where the first tile begins: minus the padding
  };

  // Neighbouring tiles overlap: they begin `outputs` pixels apart.
  WinogradSource(const Image& image, const TileGrid& grid, std::int64_t outputs)
      : image_(image),
        columns_(grid.columns()),
        outputs_(outputs),
        window_columns_((columns_ - 1) * outputs + tile),
        row_((image.channels + lanes - 1) / lanes * lanes),
        pitch_(grid.block_tiles() * row_ + lanes),
        window_(aligned_array<float>(static_cast<std::size_t>(
            ((grid.block_rows() - 1) * outputs + tile) * window_columns_ * lanes))),
        half_(aligned_array<float>(static_cast<std::size_t>(tile * window_columns_ * lanes))) {}

  // Floats of the tiles of any block: [positions, tiles of the block, channels].
  std::int64_t tiles_size() const { return positions * pitch_; }

  // The first `channels` of them. `source` is the first channel in the block's first image; images
  // are image_pitch apart.
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

  // The tiles have a matrix [tiles of the block, channels] for each position, pitch() from the one
  // before; its rows are row() apart.
  std::int64_t pitch() const { return pitch_; }
  std::int64_t row() const { return row_; }

 private:
  // A row of tiles, 16 channels: first down the columns of the window, which neighbouring tiles
  // share, then along the rows of each tile.
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
  std::int64_t row_, pitch_;  // of one tile, of one position; one line more than the tiles need, or
                              // all positions of a tile would compete for one set of the cache
  AlignedArray<float> window_;  // [rows, window_columns, lanes]
  AlignedArray<float> half_;    // [tile, window_columns, lanes]
};

}  // namespace stepladder::convolution::inline STEPLADDER_ISA

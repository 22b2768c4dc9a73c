// Spectra of the tiles of a batch, in two steps (tile_transform.hpp): columns of a block of tiles
// into half spectra, and one row of these into one matrix per frequency.
//
//   image [channels, height, width]                                       in place
//     -> half spectra [rows / 2, images, rows of tiles, channel vectors, columns, 2, lanes]
//       -> row of the spectra [frequencies of the row, tiles, 2, channels]
//
// The second step is separate, so that the matrices of one row, their products and the inverse
// transform of these stay in L2: all frequencies of 48 tiles of 32 x 32 and 64 channels take 13 MB.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/convolution/cpu/fft/tile_transform.hpp"
#include "kernels/convolution/cpu/tile_grid.hpp"

namespace stepladder::convolution::inline STEPLADDER_ISA {

// Where the tiles of an image are. A tile has tile.rows x tile.columns elements, of which the first
// `rows` x `columns` are elements of the image, or its padding, and the others are zeros. Tiles
// begin step_h rows and step_w columns apart, the first at row top and column left of the image.
struct TileSource {
  std::int64_t channels, height, width;
  std::int64_t top, left;
  std::int64_t rows, columns, step_h, step_w;
};

// Each thread has its own object; the half spectra may be shared.
class Spectra {
 public:
  static constexpr std::int64_t lanes = TileTransform::lanes, pair = TileTransform::pair;

  Spectra(const TileSource& source, const FftTile& tile, const TileGrid& grid)
      : source_(source),
        tile_(tile),
        transform_(tile),
        columns_(grid.columns()),
        vectors_(ceil_div(source.channels, lanes)),
        window_columns_((columns_ - 1) * source.step_w + source.columns),
        tile_pitch_(source.columns == tile.columns ? source.step_w : tile.columns),
        line_(((columns_ - 1) * tile_pitch_ + tile.columns) * pair),
        row_(vectors_ * lanes),
        pitch_(grid.block_tiles() * 2 * row_ + lanes),
        window_(aligned_array<float>(tile.rows * window_columns_ * lanes)) {
    std::fill_n(window_.get(), tile.rows * window_columns_ * lanes, 0.0F);
  }

  // Floats between the rows of the half spectra of `image_rows` rows of tiles, and of all rows.
  // They must be zero before columns(). One cache line more than needed: otherwise all rows could
  // map to the same cache set.
  std::int64_t half_row(std::int64_t image_rows) const {
    return image_rows * vectors_ * line_ + lanes;
  }
  std::int64_t half_size(std::int64_t image_rows) const {
    return transform_.half_rows() * half_row(image_rows);
  }
  // Floats of the matrices of one row of the spectra.
  std::int64_t matrices_size() const { return transform_.frequencies(0) * pitch_; }
  // The matrices of a block, [tiles, 2, channels], are pitch() floats apart; their rows, of
  // real or of imaginary parts, have row() floats.
  std::int64_t pitch() const { return pitch_; }
  std::int64_t row() const { return row_; }
  std::int64_t vectors() const { return vectors_; }  // of channels

  // Transforms the columns of row of tiles `row` of one image, for one vector of channels. `image`
  // is its first channel, `half` the row of tiles' place in the half spectra, whose rows are
  // half_row floats apart.
  void columns(const float* image, std::int64_t channels, std::int64_t row, float* half,
               std::int64_t half_row) {
    load_window(image, channels, source_.height, source_.width, source_.top + row * source_.step_h,
                source_.left, source_.rows, window_columns_, window_.get());
    for (std::int64_t j = 0; j < window_columns_; ++j) {
      // Tiles that do not overlap have zeros between them, which nothing overwrites.
      const std::int64_t column =
          tile_pitch_ == source_.step_w ? j : j / source_.step_w * tile_pitch_ + j % source_.step_w;
      transform_.column(window_.get() + j * lanes, window_columns_ * lanes, half + column * pair,
                        half_row);
    }
  }

  // Transforms row `row` of the half spectra of one row of tiles and one vector of channels.
  // `matrices` is the place of the first tile and channel in the matrices.
  void rows(std::int64_t row, const float* half, float* matrices) const {
    for (std::int64_t j = 0; j < columns_; ++j)
      transform_.row(row, half + j * tile_pitch_ * pair, matrices + j * 2 * row_, row_, pitch_);
  }

  std::int64_t line() const { return line_; }  // floats of a row of tiles in the half spectra

 private:
  TileSource source_;
  FftTile tile_;
  TileTransform transform_;
  std::int64_t columns_, vectors_, window_columns_;
  std::int64_t tile_pitch_;  // columns between tiles in the half spectra
  std::int64_t line_, row_, pitch_;
  AlignedArray<float> window_;  // [tile.rows, window_columns, lanes]
};

}  // namespace stepladder::convolution::inline STEPLADDER_ISA

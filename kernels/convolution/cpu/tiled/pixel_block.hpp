// Pixels are numbered through the whole batch, image after image and row after row, and the tiled
// variants work on blocks of consecutive ones. A PixelBlock says which rows of which images such a
// block needs, so that they can be copied, with their padding, into a small local image.
#pragma once

#include <cstdint>
#include <vector>

namespace stepladder::convolution {

// The pixels: [batch, rows, columns]. Pixel row a reads the image rows a · stride + [0, taps).
struct Grid {
  std::int64_t rows, columns;
  std::int64_t stride, taps;  // vertical
  std::int64_t block_pixels;  // most pixels of one block

  std::int64_t window() const { return columns < block_pixels ? columns : block_pixels; }
};

class PixelBlock {
 public:
  // Consecutive pixel rows of one image, copied together: whole rows where a block is longer than
  // one, else the columns [column, column + window).
  struct Span {
    std::int64_t image, row, rows, column;
    std::int64_t local_row;  // where its first image row lies in the local image
  };
  // Pixels side by side in one row.
  struct Run {
    std::int64_t image, row, column, length;
    std::int64_t local_row;     // of the image row that tap row 0 reads
    std::int64_t local_column;  // of its first pixel, counted in pixels
  };

  void reserve(const Grid& grid);
  // Pixels [first, first + count), count <= block_pixels. Allocates nothing once reserved.
  void cover(const Grid& grid, std::int64_t first, std::int64_t count);

  const std::vector<Span>& spans() const { return spans_; }
  const std::vector<Run>& runs() const { return runs_; }
  std::int64_t local_rows() const { return local_rows_; }  // image rows of all spans
  static std::int64_t most_local_rows(const Grid& grid);   // of any block

 private:
  std::vector<Span> spans_;
  std::vector<Run> runs_;
  std::int64_t local_rows_ = 0;
};

}  // namespace stepladder::convolution

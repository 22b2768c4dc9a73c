// Blocks of consecutive pixels, and the image rows that they read. Pixels are numbered through the
// batch: image, row, column. The rows that a block reads are copied, with their padding, into a
// small local image.
#pragma once

#include <cstdint>
#include <vector>

namespace stepladder::convolution {

// Pixels [batch, rows, columns]. Pixel row a reads the image rows a · stride + [0, taps).
struct Grid {
  std::int64_t rows, columns;
  std::int64_t stride, taps;  // vertical
  std::int64_t block_pixels;  // max. pixels of a block

  std::int64_t window() const { return columns < block_pixels ? columns : block_pixels; }
};

class PixelBlock {
 public:
  // Consecutive pixel rows of one image, copied together: whole rows if a block can hold one, else
  // the columns [column, column + window).
  struct Span {
    std::int64_t image, row, rows, column;
    std::int64_t local_row;  // row of the local image that its first image row is copied to
  };
  // Consecutive pixels of one row.
  struct Segment {
    std::int64_t image, row, column, length;
    std::int64_t local_row;     // that tap row 0 reads
    std::int64_t local_column;  // of its first pixel, in pixels
  };

  void reserve(const Grid& grid);
  // Sets the block to pixels [first, first + count), count <= block_pixels. Allocates nothing after
  // reserve().
  void set(const Grid& grid, std::int64_t first, std::int64_t count);

  const std::vector<Span>& spans() const { return spans_; }
  const std::vector<Segment>& segments() const { return segments_; }
  std::int64_t local_rows() const { return local_rows_; }  // image rows of all spans
  static std::int64_t max_local_rows(const Grid& grid);    // of any block

 private:
  std::vector<Span> spans_;
  std::vector<Segment> segments_;
  std::int64_t local_rows_ = 0;
};

}  // namespace stepladder::convolution

#include "kernels/convolution/cpu/tiled/pixel_block.hpp"

#include <algorithm>

namespace stepladder::convolution {
namespace {

// Rows that block_pixels consecutive pixels can touch, starting anywhere in a row.
std::int64_t max_segments(const Grid& grid) {
  return (grid.block_pixels + grid.columns - 2) / grid.columns + 1;
}

std::int64_t max_spans(const Grid& grid) {
  const std::int64_t segments = max_segments(grid);
  return grid.columns > grid.block_pixels ? segments : (segments + grid.rows - 2) / grid.rows + 1;
}

// Image rows that `rows` pixel rows read.
std::int64_t image_rows(const Grid& grid, std::int64_t rows) {
  return (rows - 1) * grid.stride + grid.taps;
}

}  // namespace

std::int64_t PixelBlock::max_local_rows(const Grid& grid) {
  return max_segments(grid) * grid.stride + max_spans(grid) * grid.taps;
}

void PixelBlock::reserve(const Grid& grid) {
  segments_.reserve(static_cast<std::size_t>(max_segments(grid)));
  spans_.reserve(static_cast<std::size_t>(max_spans(grid)));
}

void PixelBlock::set(const Grid& grid, std::int64_t first, std::int64_t count) {
  const bool whole_rows = grid.columns <= grid.block_pixels;
  spans_.clear();
  segments_.clear();
  local_rows_ = 0;

  std::int64_t column = first % grid.columns;
  std::int64_t row = first / grid.columns % grid.rows;
  std::int64_t image = first / grid.columns / grid.rows;
  while (count > 0) {
    if (spans_.empty() || spans_.back().image != image || !whole_rows) {
      if (!spans_.empty()) local_rows_ += image_rows(grid, spans_.back().rows);
      spans_.push_back({image, row, 0, whole_rows ? 0 : column, local_rows_});
    }
    Span& span = spans_.back();
    const std::int64_t length = std::min(count, grid.columns - column);
    segments_.push_back({image, row, column, length, span.local_row + span.rows * grid.stride,
                         column - span.column});
    ++span.rows;
    count -= length;
    column = 0;
    if (++row == grid.rows) {
      row = 0;
      ++image;
    }
  }
  local_rows_ += image_rows(grid, spans_.back().rows);
}

}  // namespace stepladder::convolution

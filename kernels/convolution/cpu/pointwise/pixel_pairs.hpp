// The pairs of an input and an output pixel that a 1 x 1 kernel connects. Output pixels that read
// padding have none. Pairs are numbered through the batch: image, row, column.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/convolution/convolution.hpp"
#include "kernels/convolution/cpu/valid_range.hpp"

namespace stepladder::convolution {

class PixelPairs {
 public:
  // `count` consecutive pairs of a row: contiguous in y, x_step() apart in x. `first` is the number
  // of the first pair, relative to the range asked for; x and y are its offsets in the operands, in
  // channel 0 of its image.
  struct Segment {
    std::int64_t first, count, x, y;
  };

  explicit PixelPairs(const Problem& problem);

  std::int64_t per_image() const { return rows_ * columns_; }
  std::int64_t total() const { return batch_ * per_image(); }
  std::int64_t x_step() const { return x_step_; }
  // True if every pixel of x or y has a pair; the results of pixels without one are zero.
  bool cover_x() const { return per_image() == x_plane_; }
  bool cover_y() const { return per_image() == y_plane_; }

  enum class Operand { x, y };

  // Replaces `segments` by those of pairs [first, first + count). No segment crosses a multiple of
  // `boundary`, counted from `first`. For Operand::y, rows that are contiguous in y are joined.
  void find_segments(std::int64_t first, std::int64_t count, std::int64_t boundary, Operand operand,
                     std::vector<Segment>& segments) const;

 private:
  std::int64_t batch_, rows_, columns_;  // of pairs; one row per image if all pixels have a pair
  std::int64_t x_first_, y_first_;       // offsets of the first pair in its plane
  std::int64_t x_pitch_, y_pitch_;       // between rows of pairs
  std::int64_t x_step_;
  std::int64_t x_plane_, y_plane_, x_image_, y_image_;  // floats per channel, per image
};

}  // namespace stepladder::convolution

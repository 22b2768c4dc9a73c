// The pixels that a 1 x 1 kernel connects: each output pixel whose one input pixel is on the image.
// They are numbered through the batch, image after image and row after row.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/convolution/convolution.hpp"
#include "kernels/convolution/cpu/inside.hpp"

namespace stepladder::convolution {

class ConnectedPixels {
 public:
  // Pixels side by side: `count` neighbours, x_step() apart in x, the first of them numbered `first`
  // by whoever asks; x and y are its offsets in the arrays, to channel 0 of its image.
  struct Run {
    std::int64_t first, count, x, y;
  };

  explicit ConnectedPixels(const Problem& problem);

  std::int64_t of_image() const { return rows_ * columns_; }
  std::int64_t of_batch() const { return batch_ * of_image(); }
  std::int64_t x_step() const { return x_step_; }
  // Pixels that no other is connected to exist, in x or in y: their results are zero.
  bool all_of_x() const { return of_image() == x_plane_; }
  bool all_of_y() const { return of_image() == y_plane_; }

  // What a list of runs is for. Rows that follow each other in y are one run of y alone.
  enum class In { x, y };

  // Replaces the runs by those of pixels [first, first + count), the first numbered 0. No run goes on
  // past a multiple of `cut`.
  void find_runs(std::int64_t first, std::int64_t count, std::int64_t cut, In in,
                 std::vector<Run>& runs) const;

 private:
  std::int64_t batch_, rows_, columns_;  // where every pixel is connected, one row a whole image
  std::int64_t x_first_, y_first_;       // offsets of the first pixel in its plane
  std::int64_t x_pitch_, y_pitch_;       // from row to row of connected pixels
  std::int64_t x_step_;
  std::int64_t x_plane_, y_plane_, x_image_, y_image_;  // floats of a channel, of an image
};

}  // namespace stepladder::convolution

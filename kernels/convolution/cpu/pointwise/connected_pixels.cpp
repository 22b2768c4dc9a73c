#include "kernels/convolution/cpu/pointwise/connected_pixels.hpp"

#include <algorithm>

namespace stepladder::convolution {

ConnectedPixels::ConnectedPixels(const Problem& p)
    : batch_(p.batch),
      x_step_(p.stride_w),
      x_plane_(p.height * p.width),
      y_plane_(p.out_h() * p.out_w()),
      x_image_(p.in_channels * x_plane_),
      y_image_(p.out_channels * y_plane_) {
  const Range down = inside(p.height, p.out_h(), p.stride_h, -p.pad_h);
  const Range along = inside(p.width, p.out_w(), p.stride_w, -p.pad_w);
  rows_ = std::max<std::int64_t>(0, down.last - down.first);
  columns_ = std::max<std::int64_t>(0, along.last - along.first);
  x_pitch_ = p.stride_h * p.width;
  y_pitch_ = p.out_w();
  x_first_ = (down.first * p.stride_h - p.pad_h) * p.width + along.first * p.stride_w - p.pad_w;
  y_first_ = down.first * y_pitch_ + along.first;
  if (of_image() == x_plane_ && of_image() == y_plane_) {
    columns_ = x_plane_;
    rows_ = 1;
  }
}

void ConnectedPixels::find_runs(std::int64_t first, std::int64_t count, std::int64_t cut, In in,
                                std::vector<Run>& runs) const {
  runs.clear();
  std::int64_t column = first % columns_;
  std::int64_t row = first / columns_ % rows_;
  std::int64_t image = first / columns_ / rows_;
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t length = std::min({count - done, columns_ - column, cut - done % cut});
    const Run run{done, length, image * x_image_ + x_first_ + row * x_pitch_ + column * x_step_,
                  image * y_image_ + y_first_ + row * y_pitch_ + column};
    if (in == In::y && done % cut != 0 && runs.back().y + runs.back().count == run.y)
      runs.back().count += length;
    else
      runs.push_back(run);
    done += length;
    column += length;
    if (column < columns_) continue;
    column = 0;
    if (++row == rows_) {
      row = 0;
      ++image;
    }
  }
}

}  // namespace stepladder::convolution

#include "kernels/convolution/cpu/pointwise/pixel_pairs.hpp"

#include <algorithm>

namespace stepladder::convolution {

PixelPairs::PixelPairs(const Problem& p)
    : batch_(p.batch),
      x_step_(p.stride_w),
      x_plane_(p.height * p.width),
      y_plane_(p.out_h() * p.out_w()),
      x_image_(p.in_channels * x_plane_),
      y_image_(p.out_channels * y_plane_) {
  const Range rows = valid_range(p.height, p.out_h(), p.stride_h, -p.pad_h);
  const Range columns = valid_range(p.width, p.out_w(), p.stride_w, -p.pad_w);
  rows_ = std::max<std::int64_t>(0, rows.end - rows.begin);
  columns_ = std::max<std::int64_t>(0, columns.end - columns.begin);
  x_pitch_ = p.stride_h * p.width;
  y_pitch_ = p.out_w();
  x_first_ = (rows.begin * p.stride_h - p.pad_h) * p.width + columns.begin * p.stride_w - p.pad_w;
  y_first_ = rows.begin * y_pitch_ + columns.begin;
  if (per_image() == x_plane_ && per_image() == y_plane_) {
    columns_ = x_plane_;
    rows_ = 1;
    x_step_ = 1;  // a stride along a side of one pixel skips nothing
  }
}

void PixelPairs::find_segments(std::int64_t first, std::int64_t count, std::int64_t boundary,
                               Operand operand, std::vector<Segment>& segments) const {
  segments.clear();
  std::int64_t column = first % columns_;
  std::int64_t row = first / columns_ % rows_;
  std::int64_t image = first / columns_ / rows_;
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t length =
        std::min({count - done, columns_ - column, boundary - done % boundary});
    const Segment segment{done, length,
                          image * x_image_ + x_first_ + row * x_pitch_ + column * x_step_,
                          image * y_image_ + y_first_ + row * y_pitch_ + column};
    if (operand == Operand::y && done % boundary != 0 &&
        segments.back().y + segments.back().count == segment.y)
      segments.back().count += length;
    else
      segments.push_back(segment);
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

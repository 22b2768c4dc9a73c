// A window is the product of a range of rows and one of columns. The rows are added first, column
// by column, into a line, and then the columns of each window along that line: r + s additions for
// an output of stride 1 instead of r · s. The loops need no tests for padding, and products with
// reciprocals replace the divisions. The bound is that of any order of summation: a running sum
// would take fewer additions still, but its error grows along the row.
#include <algorithm>
#include <vector>

#include "kernels/average_pool/axis.hpp"

namespace stepladder::average_pool {
namespace {

class Separable final : public Plan {
 public:
  Separable(const Problem& p, const Resources&)
      : p_(p), line_(static_cast<std::size_t>(std::max(p.width, p.out_w()))) {
    const Axis rows = row_axis(p), columns = column_axis(p);
    for (std::int64_t i = 0; i < p.out_h(); ++i) row_factors_.push_back(row_factor(p, i));
    for (std::int64_t j = 0; j < p.out_w(); ++j) {
      column_factors_.push_back(column_factor(p, j));
      columns_.push_back(columns.positions(j));
    }
    if (p.direction == Direction::forward)
      for (std::int64_t i = 0; i < p.out_h(); ++i) rows_.push_back(rows.positions(i));
    else
      for (std::int64_t h = 0; h < p.height; ++h) rows_.push_back(rows.windows(h));
  }

  void run(const Operands& o) override {
    for (std::int64_t plane = 0; plane < p_.planes(); ++plane) {
      float* x = o.x + plane * p_.height * p_.width;
      float* y = o.y + plane * p_.out_h() * p_.out_w();
      if (p_.direction == Direction::forward)
        forward(x, y);
      else
        backward(y, x);
    }
  }

 private:
  void forward(const float* x, float* y) {
    const std::int64_t width = p_.width, out_h = p_.out_h(), out_w = p_.out_w();
    float* const line = line_.data();
    for (std::int64_t i = 0; i < out_h; ++i) {
      const Range rows = rows_[static_cast<std::size_t>(i)];
#pragma omp simd
      for (std::int64_t c = 0; c < width; ++c) {
        float sum = x[rows.begin * width + c];
        for (std::int64_t h = rows.begin + 1; h < rows.end; ++h) sum += x[h * width + c];
        line[c] = sum;
      }
      const float row_factor = row_factors_[static_cast<std::size_t>(i)];
      for (std::int64_t j = 0; j < out_w; ++j) {
        const auto [begin, end] = columns_[static_cast<std::size_t>(j)];
        float sum = line[begin];
        for (std::int64_t c = begin + 1; c < end; ++c) sum += line[c];
        y[i * out_w + j] = sum * (row_factor * column_factors_[static_cast<std::size_t>(j)]);
      }
    }
  }

  void backward(const float* dy, float* dx) {
    const std::int64_t width = p_.width, out_w = p_.out_w();
    float* const line = line_.data();
    for (std::int64_t h = 0; h < p_.height; ++h) {
      const Range windows = rows_[static_cast<std::size_t>(h)];
#pragma omp simd
      for (std::int64_t j = 0; j < out_w; ++j) {
        float sum = 0;
        for (std::int64_t i = windows.begin; i < windows.end; ++i)
          sum += dy[i * out_w + j] * row_factors_[static_cast<std::size_t>(i)];
        line[j] = sum * column_factors_[static_cast<std::size_t>(j)];
      }
      float* row = dx + h * width;
      std::fill_n(row, width, 0.0F);
      for (std::int64_t j = 0; j < out_w; ++j) {
        const auto [begin, end] = columns_[static_cast<std::size_t>(j)];
        for (std::int64_t c = begin; c < end; ++c) row[c] += line[j];
      }
    }
  }

  Problem p_;
  std::vector<float> line_;     // forward [width]: sums of rows of x; backward [out_w]: of dy
  std::vector<Range> rows_;     // forward [out_h]: of x, to add; backward [height]: of dy
  std::vector<Range> columns_;  // [out_w]: of x, in each window
  std::vector<float> row_factors_, column_factors_;  // [out_h], [out_w]
};

constexpr VariantInfo info{
    .name = "separable",
    .technique = Technique::serial,
    .builds_on = "serial",
    .adds = "adds rows first, then columns; no tests for padding, no divisions",
    .idea = Idea::algorithm,
};

const Registration registration{info, make_plan<AveragePool, Separable>};

}  // namespace
}  // namespace stepladder::average_pool

// im2col: each image is copied into a matrix with one column per output pixel, which holds all
// input elements that the pixel reads. The convolution is then a product of two matrices:
//
//   columns [group_in · kernel_h · kernel_w, out_h · out_w]
//   forward            y  [group_out, pixels]  = w [group_out, taps] · columns
//   backward_data      columns = wᵀ · dy, then each column is added back to its pixels of dx
//   backward_weights   dw [group_out, taps]   += dy · columnsᵀ
//
// Each pixel is copied up to kernel_h · kernel_w times. The product repays that: it keeps 4 x 2
// accumulators in registers for its whole length, where `reordered` loads and stores one for every
// product. Source: Chellapilla, Puri, Simard, High performance convolutional neural networks for
// document processing, 2006.
#include "kernels/common/cpu/aligned.hpp"
#include "kernels/convolution/cpu/unfolded/unfold.hpp"

namespace stepladder::convolution {
namespace {

// A matrix with any strides between rows and columns, in floats. Swapped strides transpose it.
struct View {
  const float* data;
  std::int64_t row, column;
  const float* at(std::int64_t i, std::int64_t j) const { return data + i * row + j * column; }
};

// c[Rows, Columns] = or += a[Rows, k] · b[k, Columns]
template <std::int64_t Rows, std::int64_t Columns>
void multiply_tile(std::int64_t k, View a, View b, float* c, std::int64_t ldc, bool accumulate) {
  float acc[Rows][Columns] = {};
  const float* a_l = a.data;
  const float* b_l = b.data;
  for (std::int64_t l = 0; l < k; ++l, a_l += a.column, b_l += b.row)
    for (std::int64_t i = 0; i < Rows; ++i)
      for (std::int64_t j = 0; j < Columns; ++j) acc[i][j] += a_l[i * a.row] * b_l[j * b.column];
  for (std::int64_t i = 0; i < Rows; ++i)
    for (std::int64_t j = 0; j < Columns; ++j)
      c[i * ldc + j] = accumulate ? c[i * ldc + j] + acc[i][j] : acc[i][j];
}

// c[m, n], rows ldc apart, = or += a[m, k] · b[k, n]
void multiply(std::int64_t m, std::int64_t n, std::int64_t k, View a, View b, float* c,
              std::int64_t ldc, bool accumulate) {
  for (std::int64_t i = 0; i < m;) {
    const std::int64_t rows = i + 4 <= m ? 4 : 1;
    for (std::int64_t j = 0; j < n;) {
      const std::int64_t columns = j + 2 <= n ? 2 : 1;
      const View a_tile{a.at(i, 0), a.row, a.column}, b_tile{b.at(0, j), b.row, b.column};
      float* c_tile = c + i * ldc + j;
      if (rows == 4 && columns == 2)
        multiply_tile<4, 2>(k, a_tile, b_tile, c_tile, ldc, accumulate);
      else if (rows == 4)
        multiply_tile<4, 1>(k, a_tile, b_tile, c_tile, ldc, accumulate);
      else if (columns == 2)
        multiply_tile<1, 2>(k, a_tile, b_tile, c_tile, ldc, accumulate);
      else
        multiply_tile<1, 1>(k, a_tile, b_tile, c_tile, ldc, accumulate);
      j += columns;
    }
    i += rows;
  }
}

class Im2col final : public Plan {
 public:
  Im2col(const Problem& problem, const Resources&)
      : p_(problem),
        taps_(p_.group_in() * p_.kernel_h * p_.kernel_w),
        pixels_(p_.out_h() * p_.out_w()),
        columns_(aligned_array<float>(taps_ * pixels_)) {}

  void run(const Operands& t) override {
    for (std::int64_t n = 0; n < p_.batch; ++n)
      for (std::int64_t g = 0; g < p_.groups; ++g) {
        float* x = t.x + (n * p_.groups + g) * p_.group_in() * p_.height * p_.width;
        float* y = t.y + (n * p_.groups + g) * p_.group_out() * pixels_;
        float* w = t.w + g * p_.group_out() * taps_;
        convolve_image(x, w, y, n > 0);
      }
  }

 private:
  // x: [group_in, height, width]   w: [group_out, taps]   y: [group_out, pixels]
  void convolve_image(float* x, float* w, float* y, bool accumulate_weights) {
    float* columns = columns_.get();
    switch (p_.direction) {
      case Direction::forward:
        unfold(p_, x, columns, pixels_);
        multiply(p_.group_out(), pixels_, taps_, {w, taps_, 1}, {columns, pixels_, 1}, y, pixels_,
                 false);
        break;
      case Direction::backward_data:
        multiply(taps_, pixels_, p_.group_out(), {w, 1, taps_}, {y, pixels_, 1}, columns, pixels_,
                 false);
        fold(p_, columns, pixels_, x);
        break;
      case Direction::backward_weights:
        unfold(p_, x, columns, pixels_);
        multiply(p_.group_out(), taps_, pixels_, {y, pixels_, 1}, {columns, 1, pixels_}, w, taps_,
                 accumulate_weights);
        break;
    }
  }

  Problem p_;
  std::int64_t taps_, pixels_;
  AlignedArray<float> columns_;  // [taps, pixels] of one image and group
};

constexpr VariantInfo info{
    .name = "im2col",
    .technique = Technique::serial,
    .builds_on = "reordered",
    .adds = "each image unfolded into a matrix: a matrix product does the work",
    .idea = Idea::algorithm,
};

const Registration registration{info, make_plan<Convolution, Im2col>};

}  // namespace
}  // namespace stepladder::convolution

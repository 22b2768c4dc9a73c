// The product of im2col with one of the products of kernels/common/cpu/product.hpp, for simd and
// tiled.
#pragma once

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/product.hpp"
#include "kernels/convolution/cpu/unfolded/unfold.hpp"

namespace stepladder::convolution::inline STEPLADDER_ISA {

// AnyProduct: a Product without panels.
template <class AnyProduct>
class UnfoldedProduct final : public Plan {
 public:
  UnfoldedProduct(const Problem& problem, const Resources&)
      : p_(problem),
        taps_(p_.group_in() * p_.kernel_h * p_.kernel_w),
        pixels_(p_.out_h() * p_.out_w()),
        row_(is_transposed() ? taps_ + line_floats : pixels_ + line_floats),
        columns_(aligned_array<float>((is_transposed() ? pixels_ : taps_) * row_)) {}

  void run(const Operands& t) override {
    for (std::int64_t n = 0; n < p_.batch; ++n)
      for (std::int64_t g = 0; g < p_.groups; ++g) {
        float* x = t.x + (n * p_.groups + g) * p_.group_in() * p_.height * p_.width;
        float* y = t.y + (n * p_.groups + g) * p_.group_out() * pixels_;
        convolve_image(x, t.w + g * p_.group_out() * taps_, y, n > 0);
      }
  }

 private:
  bool is_transposed() const { return p_.direction == Direction::backward_weights; }

  // x: [group_in, height, width]   w: [group_out, taps]   y: [group_out, pixels]
  void convolve_image(float* x, float* w, float* y, bool adds_weights) {
    float* columns = columns_.get();
    switch (p_.direction) {
      case Direction::forward:  // y = w · columns
        unfold(p_, x, columns, row_);
        AnyProduct::multiply(w, taps_, 1, columns, row_, y, pixels_, p_.group_out(), pixels_, taps_,
                             false);
        break;
      case Direction::backward_data:  // columns = wᵀ · dy, then added back to their pixels
        AnyProduct::multiply(w, 1, taps_, y, pixels_, columns, row_, taps_, pixels_, p_.group_out(),
                             false);
        fold(p_, columns, row_, x);
        break;
      case Direction::backward_weights:  // dw += dy · columnsᵀ
        unfold_transposed(p_, x, columns, row_);
        AnyProduct::multiply(y, pixels_, 1, columns, row_, w, taps_, p_.group_out(), taps_, pixels_,
                             adds_weights);
        break;
    }
  }

  Problem p_;
  std::int64_t taps_, pixels_;
  std::int64_t row_;             // between rows of columns_, never a power of two
  AlignedArray<float> columns_;  // [taps, row], or [pixels, row] for backward_weights
};

}  // namespace stepladder::convolution::inline STEPLADDER_ISA

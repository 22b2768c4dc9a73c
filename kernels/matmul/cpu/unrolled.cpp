// Four steps of k at once: each element of C is loaded and stored once per four products instead of
// once per product.
//
//   row of A          b0 ────────────────
//   a0 a1 a2 a3       b1 ────────────────     c[j] += a0 b0[j] + a1 b1[j] + a2 b2[j] + a3 b3[j]
//                     b2 ────────────────
//   row of C          b3 ────────────────     5 loads and 1 store for 4 multiply-adds;
//   c ────────────────                        serial_ikj has 8 loads and 4 stores
#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/transpose.hpp"
#include "kernels/matmul/matmul.hpp"

namespace stepladder::matmul {
namespace {

class Unrolled final : public Plan {
 public:
  Unrolled(const Problem& problem, const Resources&)
      : problem_(problem),
        b_stride_(problem.transpose_b ? problem.n + line_floats : problem.n),
        rows_of_b_(aligned_array<float>(problem.transpose_b ? problem.k * b_stride_ : 0)) {}

  void run(const Operands& o) override {
    const Problem& p = problem_;
    if (p.transpose_b) transpose(o.b, p.k, rows_of_b_.get(), b_stride_, p.n, p.k);
    const std::int64_t a_step = p.transpose_a ? p.m : 1;
    for (std::int64_t i = 0; i < p.m; ++i) {
      const float* a = p.transpose_a ? o.a + i : o.a + i * p.k;
      const float* b = p.transpose_b ? rows_of_b_.get() : o.b;  // [k, n]
      float* c = o.c + i * p.n;
      for (std::int64_t j = 0; j < p.n; ++j) c[j] = 0;
      std::int64_t l = 0;
      for (; l + 4 <= p.k; l += 4, a += 4 * a_step, b += 4 * b_stride_) {
        const float a0 = a[0], a1 = a[a_step], a2 = a[2 * a_step], a3 = a[3 * a_step];
        const float *b0 = b, *b1 = b + b_stride_, *b2 = b1 + b_stride_, *b3 = b2 + b_stride_;
#pragma omp simd
        for (std::int64_t j = 0; j < p.n; ++j)
          c[j] = c[j] + a0 * b0[j] + a1 * b1[j] + a2 * b2[j] + a3 * b3[j];
      }
      for (; l < p.k; ++l, a += a_step, b += b_stride_)
#pragma omp simd
        for (std::int64_t j = 0; j < p.n; ++j) c[j] += a[0] * b[j];
    }
  }

 private:
  Problem problem_;
  std::int64_t b_stride_;          // between rows of op(B), as in `serial_ikj`
  AlignedArray<float> rows_of_b_;  // [k, b_stride] when transpose_b
};

constexpr VariantInfo info{
    .name = "unrolled",
    .technique = Technique::serial,
    .builds_on = "serial_ikj",
    .adds = "four products per load and store of C",
    .idea = Idea::register_tile,
};

const Registration registration{info, make_plan<Matmul, Unrolled>};

}  // namespace
}  // namespace stepladder::matmul

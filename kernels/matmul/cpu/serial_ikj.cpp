// Computes the products in another loop order: the innermost loop runs along a row of op(B) and a
// row of C. It uses all 16 floats of every cache line that it fetches, and no addition waits for
// another. A transposed B is first copied into rows.
#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/transpose.hpp"
#include "kernels/matmul/matmul.hpp"

namespace stepladder::matmul {
namespace {

class SerialIkj final : public Plan {
 public:
  SerialIkj(const Problem& problem, const Resources&)
      : problem_(problem),
        b_stride_(problem.transpose_b ? problem.n + line_floats : problem.n),
        rows_of_b_(aligned_array<float>(problem.transpose_b ? problem.k * b_stride_ : 0)) {}

  void run(const Operands& o) override {
    const Problem& p = problem_;
    if (p.transpose_b) transpose(o.b, p.k, rows_of_b_.get(), b_stride_, p.n, p.k);
    const float* b = p.transpose_b ? rows_of_b_.get() : o.b;  // [k, n]
    for (std::int64_t i = 0; i < p.m; ++i) {
      float* c = o.c + i * p.n;
      for (std::int64_t j = 0; j < p.n; ++j) c[j] = 0;
      for (std::int64_t l = 0; l < p.k; ++l) {
        const float a = p.transpose_a ? o.a[l * p.m + i] : o.a[i * p.k + l];
        const float* b_row = b + l * b_stride_;
#pragma omp simd
        for (std::int64_t j = 0; j < p.n; ++j) c[j] += a * b_row[j];
      }
    }
  }

 private:
  Problem problem_;
  // Between rows of op(B). The copy pads rows by a cache line: rows a power of two apart would all
  // map to the same cache sets.
  std::int64_t b_stride_;
  AlignedArray<float> rows_of_b_;  // [k, b_stride] when transpose_b
};

constexpr VariantInfo info{
    .name = "serial_ikj",
    .technique = Technique::serial,
    .builds_on = "serial_ijk",
    .adds = "loop order i, k, j: the innermost loop runs along rows",
    .idea = Idea::loop_order,
};

const Registration registration{info, make_plan<Matmul, SerialIkj>};

}  // namespace
}  // namespace stepladder::matmul

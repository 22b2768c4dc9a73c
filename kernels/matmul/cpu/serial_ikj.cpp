// The same sums in another order: the innermost loop runs along a row of op(B) and a row of C, so
// that every fetched cache line is used whole (16 floats instead of 1) and no addition waits for
// the one before it. A transposed B is first turned into rows.
#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/transpose.hpp"
#include "kernels/matmul/matmul.hpp"

namespace stepladder::matmul {
namespace {

class SerialIkj final : public Plan {
 public:
  SerialIkj(const Problem& problem, const Resources&)
      : problem_(problem),
        b_step_(problem.transpose_b ? problem.n + 16 : problem.n),
        rows_of_b_(aligned_array<float>(problem.transpose_b ? problem.k * b_step_ : 0)) {}

  void run(const Operands& o) override {
    const Problem& p = problem_;
    if (p.transpose_b) transpose(o.b, p.k, rows_of_b_.get(), b_step_, p.n, p.k);
    const float* b = p.transpose_b ? rows_of_b_.get() : o.b;  // [k, n]
    for (std::int64_t i = 0; i < p.m; ++i) {
      float* c = o.c + i * p.n;
      for (std::int64_t j = 0; j < p.n; ++j) c[j] = 0;
      for (std::int64_t l = 0; l < p.k; ++l) {
        const float a = p.transpose_a ? o.a[l * p.m + i] : o.a[i * p.k + l];
        const float* b_row = b + l * b_step_;
        for (std::int64_t j = 0; j < p.n; ++j) c[j] += a * b_row[j];
      }
    }
  }

 private:
  Problem problem_;
  std::int64_t b_step_;  // a line more than n for the copy: rows a power of two apart would
                         // all fall into the same sets of the cache
  AlignedArray<float> rows_of_b_;  // [k, b_step] when transpose_b
};

constexpr VariantInfo info{
    .name = "serial_ikj",
    .technique = Technique::serial,
    .builds_on = "serial_ijk",
    .adds = "the innermost loop runs along the rows of memory",
};

const Registration registration{info, make_plan<Matmul, SerialIkj>};

}  // namespace
}  // namespace stepladder::matmul

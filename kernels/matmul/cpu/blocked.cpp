// Cache blocking: a block of op(B), 128 rows of 512 floats, 256 KiB, stays in L2 while every row of
// A is multiplied with it. The innermost loop is that of `unrolled`.
//
// A transposed B is copied into rows block by block, so the copy stays in the cache (Lam, Rothberg
// and Wolf, The Cache Performance and Optimizations of Blocked Algorithms, 1991).
#include <algorithm>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/transpose.hpp"
#include "kernels/matmul/matmul.hpp"

namespace stepladder::matmul {
namespace {

constexpr std::int64_t block_k = 128, block_n = 512;  // 256 KiB: a quarter of an L2 of 1 MiB
// Between rows of the transposed block. Rows a power of two apart would all map to the same two
// sets of L1; one more cache line avoids that.
constexpr std::int64_t row_stride = block_n + line_floats;

class Blocked final : public Plan {
 public:
  Blocked(const Problem& problem, const Resources&)
      : problem_(problem),
        block_(aligned_array<float>(problem.transpose_b ? block_k * row_stride : 0)) {}

  void run(const Operands& o) override {
    const Problem& p = problem_;
    for (std::int64_t j = 0; j < p.n; j += block_n)
      for (std::int64_t l = 0; l < p.k; l += block_k) {
        const std::int64_t n = std::min(block_n, p.n - j);
        const std::int64_t k = std::min(block_k, p.k - l);
        if (p.transpose_b) transpose(o.b + j * p.k + l, p.k, block_.get(), row_stride, n, k);
        const float* b = p.transpose_b ? block_.get() : o.b + l * p.n + j;  // [k, n]
        const std::int64_t b_step = p.transpose_b ? row_stride : p.n;
        const std::int64_t a_step = p.transpose_a ? p.m : 1;
        for (std::int64_t i = 0; i < p.m; ++i) {
          float* c = o.c + i * p.n + j;
          if (l == 0) std::fill_n(c, n, 0.0f);
          add_products(p.transpose_a ? o.a + l * p.m + i : o.a + i * p.k + l, a_step, b, b_step, c,
                       n, k);
        }
      }
  }

 private:
  // c[n] += a[k] · b[k, n]
  static void add_products(const float* a, std::int64_t a_step, const float* b, std::int64_t b_step,
                           float* c, std::int64_t n, std::int64_t k) {
    std::int64_t l = 0;
    for (; l + 4 <= k; l += 4, a += 4 * a_step, b += 4 * b_step) {
      const float a0 = a[0], a1 = a[a_step], a2 = a[2 * a_step], a3 = a[3 * a_step];
      const float *b0 = b, *b1 = b + b_step, *b2 = b + 2 * b_step, *b3 = b + 3 * b_step;
#pragma omp simd
      for (std::int64_t j = 0; j < n; ++j)
        c[j] = c[j] + a0 * b0[j] + a1 * b1[j] + a2 * b2[j] + a3 * b3[j];
    }
    for (; l < k; ++l, a += a_step, b += b_step)
#pragma omp simd
      for (std::int64_t j = 0; j < n; ++j) c[j] += a[0] * b[j];
  }

  Problem problem_;
  AlignedArray<float> block_;  // [block_k, row_stride] when transpose_b
};

constexpr VariantInfo info{
    .name = "blocked",
    .technique = Technique::serial,
    .builds_on = "unrolled",
    .adds = "a block of B stays in L2 while all rows of A pass",
    .idea = Idea::cache_blocking,
};

const Registration registration{info, make_plan<Matmul, Blocked>};

}  // namespace
}  // namespace stepladder::matmul

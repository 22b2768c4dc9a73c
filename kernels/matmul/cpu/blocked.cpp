// Reuse what is near. A block of op(B) stays in the second-level cache while every row of A meets
// it, and an element of C takes four products before it goes back to memory, instead of one:
//
//              B block [128, 512], 256 KiB         c[j] += a0 b0[j] + a1 b1[j] + a2 b2[j] + a3
//              b3[j]
//   A row      b0 ───────────────
//   a0 a1 a2 a3  b1 ─────────────                  5 loads and 1 store for 4 multiply-adds,
//              b2 ───────────────                  serial_ikj has 8 loads and 4 stores
//              b3 ───────────────
//
// A transposed B is turned into rows a block at a time, so that the copy never leaves the cache
// (Lam, Rothberg and Wolf, The Cache Performance and Optimizations of Blocked Algorithms, 1991).
#include <algorithm>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/transpose.hpp"
#include "kernels/matmul/matmul.hpp"

namespace stepladder::matmul {
namespace {

constexpr std::int64_t block_depth = 128;  // along k
constexpr std::int64_t block_width = 512;  // along n
// Step between turned rows: a line more than a power of two, or they would all fall into the same
// two sets of the first-level cache.
constexpr std::int64_t width_step = block_width + 16;

class Blocked final : public Plan {
 public:
  Blocked(const Problem& problem, const Resources&)
      : problem_(problem),
        block_(aligned_array<float>(problem.transpose_b ? block_depth * width_step : 0)) {}

  void run(const Operands& o) override {
    const Problem& p = problem_;
    for (std::int64_t j = 0; j < p.n; j += block_width)
      for (std::int64_t l = 0; l < p.k; l += block_depth) {
        const std::int64_t width = std::min(block_width, p.n - j);
        const std::int64_t depth = std::min(block_depth, p.k - l);
        if (p.transpose_b)
          transpose(o.b + j * p.k + l, p.k, block_.get(), width_step, width, depth);
        const float* b = p.transpose_b ? block_.get() : o.b + l * p.n + j;  // [depth, width]
        const std::int64_t b_step = p.transpose_b ? width_step : p.n;
        const std::int64_t a_step = p.transpose_a ? p.m : 1;
        for (std::int64_t i = 0; i < p.m; ++i) {
          float* c = o.c + i * p.n + j;
          if (l == 0) std::fill_n(c, width, 0.0f);
          add_products(p.transpose_a ? o.a + l * p.m + i : o.a + i * p.k + l, a_step, b, b_step, c,
                       width, depth);
        }
      }
  }

 private:
  // c[width] += a[depth] · b[depth, width]
  static void add_products(const float* a, std::int64_t a_step, const float* b, std::int64_t b_step,
                           float* c, std::int64_t width, std::int64_t depth) {
    std::int64_t l = 0;
    for (; l + 4 <= depth; l += 4, a += 4 * a_step, b += 4 * b_step) {
      const float a0 = a[0], a1 = a[a_step], a2 = a[2 * a_step], a3 = a[3 * a_step];
      const float *b0 = b, *b1 = b + b_step, *b2 = b + 2 * b_step, *b3 = b + 3 * b_step;
      for (std::int64_t j = 0; j < width; ++j)
        c[j] = c[j] + a0 * b0[j] + a1 * b1[j] + a2 * b2[j] + a3 * b3[j];
    }
    for (; l < depth; ++l, a += a_step, b += b_step)
      for (std::int64_t j = 0; j < width; ++j) c[j] += a[0] * b[j];
  }

  Problem problem_;
  AlignedArray<float> block_;  // [block_depth, width_step] when transpose_b
};

constexpr VariantInfo info{
    .name = "blocked",
    .technique = Technique::serial,
    .builds_on = "serial_ikj",
    .adds = "a block of B stays in the cache, an element of C in a register for four products",
};

const Registration registration{info, make_plan<Matmul, Blocked>};

}  // namespace
}  // namespace stepladder::matmul

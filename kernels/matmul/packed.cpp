// A tile of C stays in registers, and panels of A and B that were packed for it stream past. simd
// does four multiply-adds per load and store of C and needs a load for each; the tile does 24 for
// 11 loads and touches C once per 256 steps of k, so the arithmetic units and not the caches set
// the pace. The loops around the tile, from the outside (Goto and van de Geijn 2008):
//
//   depths of 256          so that a panel of B fits the first-level cache
//     rows of 240          A's block packed, transposed or not: second-level cache
//       columns of NR      B's panel packed, transposed or not: first-level cache
//         rows of MR       the tile: kernels/common/gemm_tile.hpp
#include "kernels/common/simd.hpp"
#include "kernels/matmul/packed_product.hpp"

namespace stepladder::matmul {
namespace {

class Packed final : public Plan {
 public:
  Packed(const Problem& problem, const Resources&)
      : problem_(problem),
        product_(problem),
        a_block_(aligned_array<float>(product_.block_size())),
        b_strip_(aligned_array<float>(product_.strip_size())) {}

  void run(const Operands& o) override {
    const Problem& p = problem_;
    for (std::int64_t l = 0; l < p.k; l += product_.depth()) {
      const Range depths{l, std::min(p.k, l + product_.depth())};
      for (std::int64_t i = 0; i < p.m; i += product_.block_rows()) {
        const Range rows{i, std::min(p.m, i + product_.block_rows())};
        if (product_.packs_a()) product_.pack_a(o.a, rows, depths, a_block_.get());
        product_.multiply(o, a_block_.get(), rows, {0, p.n}, depths, b_strip_.get());
      }
    }
  }

 private:
  Problem problem_;
  PackedProduct<Arch> product_;
  AlignedArray<float> a_block_;  // [block_rows, depth]
  AlignedArray<float> b_strip_;  // [depth, 48 or 64]
};

constexpr VariantInfo info{
    .name = "packed",
    .technique = Technique::simd,
    .builds_on = "simd",
    .adds = "a tile of C in registers, fed from packed panels of A and B",
    .isa = build_isa,
};

const Registration registration{info, make_plan<Matmul, Packed>};

}  // namespace
}  // namespace stepladder::matmul

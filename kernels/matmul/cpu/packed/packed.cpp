// A tile of C stays in registers, and A and a packed panel of B stream past it. simd does four
// multiply-adds per load and store of C and needs a load for each; the tile does 24 for 11 loads and
// touches C once per 512 steps of k, so the arithmetic units and not the caches set the pace. The
// loops around the tile, from the outside (after Goto and van de Geijn 2008):
//
//   depths of 512          so that C is read and written seldom
//     rows of 240          A's block, read in place: second-level cache
//       columns of NR      B's panel, packed while the first tile is computed
//         rows of MR       the tile: kernels/common/cpu/gemm_tile.hpp
//
// Unlike theirs it does not pack A. Rows of A are read a float at a time, one line for 16 steps of
// k: too seldom to be worth a copy.
#include "kernels/common/cpu/simd.hpp"
#include "kernels/matmul/cpu/packed/packed_product.hpp"

namespace stepladder::matmul {
namespace {

class Packed final : public Plan {
 public:
  Packed(const Problem& problem, const Resources&) : product_(problem) {}

  void run(const Operands& operands) override {
    product_.multiply(operands, {0, product_.computed().m}, {0, product_.computed().n});
  }

 private:
  PackedProduct<> product_;
};

constexpr VariantInfo info{
    .name = "packed",
    .technique = Technique::simd,
    .builds_on = "simd",
    .adds = "a tile of C in registers, fed from packed panels of B",
    .isa = build_isa,
};

const Registration registration{info, make_plan<Matmul, Packed>};

}  // namespace
}  // namespace stepladder::matmul

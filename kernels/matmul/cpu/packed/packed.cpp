// Packing: the register tile reads B from panels, copied once, whose lines follow each other in
// memory: no conflicts for the sets of L1, one page instead of one for each row. The arithmetic
// units limit its speed, not caches.
// The loops around the micro-kernel, outermost first (after Goto and van de Geijn, 2008):
//
//   KC <= 512 of k         C is read and written once per block; 1,024 if B is as wide as a panel
//     NC columns           a block of B, packed in panels of NR columns: one panel, or 512 KiB
//       MR rows            a strip of A, read in place; packed if A is transposed and K >= 128
//         NR columns       the micro-kernel, kernels/common/cpu/gemm_tile.hpp
//
// Unlike theirs, an A with rows along k is not packed. They are read a float at a time, one cache
// line per 16 steps of k, which is too little traffic to pay for a copy.
#include "kernels/common/cpu/simd.hpp"
#include "kernels/matmul/cpu/packed/packed_product.hpp"

namespace stepladder::matmul {

template class PackedProduct<false>;  // compiled here for all rungs that use it

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
    .builds_on = "tiled",
    .adds =
        "B packed into panels that the tile reads line by line; a transposed A too if K is long",
    .idea = Idea::packing,
    .isa = build_isa,
};

const Registration registration{info, make_plan<Matmul, Packed>};

}  // namespace
}  // namespace stepladder::matmul

// Vectors: the loops of `blocked` on 4, 8 or 16 columns per instruction (simd_block.hpp). Four
// multiply-adds take five loads and a store; the register tile of `tiled` needs 11 loads for 24.
// Tails of fewer columns than lanes use masks.
#include "kernels/common/cpu/simd.hpp"

#include "kernels/matmul/cpu/simd_block.hpp"

namespace stepladder::matmul {
namespace {

class Simd final : public Plan {
 public:
  Simd(const Problem& problem, const Resources&)
      : problem_(problem), workspace_(aligned_array<float>(SimdBlock::workspace(problem))) {}

  void run(const Operands& operands) override {
    SimdBlock::multiply(problem_, operands, {0, problem_.m}, {0, problem_.n}, workspace_.get());
  }

 private:
  Problem problem_;
  AlignedArray<float> workspace_;
};

constexpr VariantInfo info{
    .name = "simd",
    .technique = Technique::simd,
    .builds_on = "blocked",
    .adds = "vectors of 4, 8 or 16 columns, and fused multiply-adds",
    .idea = Idea::vectors,
    .isa = build_isa,
    .triangle = true,
};

const Registration registration{info, make_plan<Matmul, Simd>};

}  // namespace
}  // namespace stepladder::matmul

// One instruction, many columns: blocked's loops (simd_block.hpp) on vectors of 4, 8 or 16 floats.
// A vector of C is loaded and stored once per four multiply-adds, five loads and a store in all, so
// the first-level cache sets the pace and not the arithmetic; the register tile of `packed` removes
// that. The columns that do not fill a vector go through masks.
#include "kernels/common/cpu/simd.hpp"

#include "kernels/matmul/cpu/simd_block.hpp"

namespace stepladder::matmul {
namespace {

class Simd final : public Plan {
 public:
  Simd(const Problem& problem, const Resources&)
      : problem_(problem), workspace_(aligned_array<float>(SimdBlock::workspace(problem))) {}

  void run(const Operands& operands) override {
    SimdBlock::multiply(problem_, operands, {0, problem_.m}, {0, problem_.n},
                              workspace_.get());
  }

 private:
  Problem problem_;
  AlignedArray<float> workspace_;
};

constexpr VariantInfo info{
    .name = "simd",
    .technique = Technique::simd,
    .builds_on = "blocked",
    .adds = "vectors of 4, 8 or 16 columns at once",
    .isa = build_isa,
};

const Registration registration{info, make_plan<Matmul, Simd>};

}  // namespace
}  // namespace stepladder::matmul

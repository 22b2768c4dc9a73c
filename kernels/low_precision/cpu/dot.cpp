// `simd` with instructions that multiply narrow operands as they are: nothing is widened but fp16,
// and an instruction adds 2 (bf16), 4 (int8) or 32 (bits) products to each lane. Two loads for each
// of them remain.
#include "kernels/low_precision/cpu/in_place.hpp"

namespace stepladder::low_precision {
namespace {

class Dot final : public Plan {
 public:
  Dot(const Problem& problem, const Resources&) : problem_(problem) {
    require_dot_products(problem.format);
  }
  void run(const Operands& o) override {
    for_dot(problem_.format, [&]<class Kind>() { multiply_in_place<Kind, 1>(problem_, o); });
  }

 private:
  Problem problem_;
};

constexpr VariantInfo info{
    .name = "dot",
    .technique = Technique::simd,
    .builds_on = "simd",
    .adds = "instructions that add 2, 4 or 32 products of narrow neighbours to a lane",
    .idea = Idea::dot_products,
};

const Registration registration{info, make_plan<LowPrecision, Dot>};

}  // namespace
}  // namespace stepladder::low_precision

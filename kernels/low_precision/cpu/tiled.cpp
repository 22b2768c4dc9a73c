// A register tile: 4 x 4 elements of C at once. Four vectors of A and four of B are loaded for
// sixteen instructions that multiply, where `dot` loads two for each.
#include "kernels/low_precision/cpu/in_place.hpp"

namespace stepladder::low_precision {
namespace {

class Tiled final : public Plan {
 public:
  Tiled(const Problem& problem, const Resources&) : problem_(problem) {
    require_dot_products(problem.format);
  }
  void run(const Operands& o) override {
    for_dot(problem_.format, [&]<class Kind>() { multiply_in_place<Kind, 4>(problem_, o); });
  }

 private:
  Problem problem_;
};

constexpr VariantInfo info{
    .name = "tiled",
    .technique = Technique::simd,
    .builds_on = "dot",
    .adds = "a tile of 4 x 4 sums in registers; operands read in place",
    .idea = Idea::register_tile,
};

const Registration registration{info, make_plan<LowPrecision, Tiled>};

}  // namespace
}  // namespace stepladder::low_precision

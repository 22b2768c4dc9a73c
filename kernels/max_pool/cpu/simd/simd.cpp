// One instruction, many outputs: vectors along the output row, their values gathered from x with
// loads and shuffles. Backward turns the scatter around: each dx asks the windows that cover it, is
// written once, and needs no zeros before. What is left is the memory that goes through.
#include "kernels/max_pool/cpu/simd/pooling.hpp"

namespace stepladder::max_pool {
namespace {

class Simd final : public Plan {
 public:
  Simd(const Problem& p, const Resources&) : planes_(p.planes()), pooling_(p, 1) {}
  void run(const Operands& o) override { pooling_.run(o, 0, planes_, 0); }

 private:
  std::int64_t planes_;
  SimdPooling pooling_;
};

constexpr VariantInfo info{
    .name = "simd",
    .technique = Technique::simd,
    .builds_on = "branchless",
    .adds = "vectors of 4, 8 or 16 outputs at once; each gradient written once",
    .isa = build_isa,
};

const Registration registration{info, make_plan<MaxPool, Simd>};

}  // namespace
}  // namespace stepladder::max_pool

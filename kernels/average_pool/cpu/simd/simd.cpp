// separable on vectors of 4, 8 or 16 columns. Rows are added as they are in memory; a stride of 2
// separates even from odd columns with a shuffle, backward merges them again. The rows of a pass
// are few enough for L1, so that memory is read and written once and its bandwidth is the limit.
#include "kernels/average_pool/cpu/simd/pooling.hpp"

namespace stepladder::average_pool {
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
    .builds_on = "separable",
    .adds = "vectors of 4, 8 or 16 columns, in passes over rows that stay in L1",
    .isa = build_isa,
};

const Registration registration{info, make_plan<AveragePool, Simd>};

}  // namespace
}  // namespace stepladder::average_pool

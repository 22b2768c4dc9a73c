// oneDNN's matmul primitive on the operands as they lie.
#include "kernels/low_precision/vendor/onednn_plan.hpp"

namespace stepladder::low_precision {
namespace {

constexpr VariantInfo info{
    .name = "onednn",
    .technique = Technique::vendor,
    .adds = "oneDNN's matmul primitive, compiled for the format and the problem",
    .threaded = true,
};

const Registration registration{info, make_plan<LowPrecision, OneDnn<false>>};

}  // namespace
}  // namespace stepladder::low_precision

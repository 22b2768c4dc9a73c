// oneDNN's matmul primitive on the operands as they lie.
#include "kernels/matmul/vendor/onednn_plan.hpp"

namespace stepladder::matmul {
namespace {

constexpr VariantInfo info{
    .name = "onednn",
    .technique = Technique::vendor,
    .adds = "oneDNN's matmul primitive, compiled for the problem at run time",
    .threaded = true,
    .epilogue = true,
};

const Registration registration{info, make_plan<Matmul, OneDnn<false>>};

}  // namespace
}  // namespace stepladder::matmul

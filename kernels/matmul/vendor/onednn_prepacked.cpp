// oneDNN's matmul primitive with B in the layout that it prefers, reordered once by prepare().
#include "kernels/matmul/vendor/onednn_plan.hpp"

namespace stepladder::matmul {
namespace {

constexpr VariantInfo info{
    .name = "onednn_prepacked",
    .technique = Technique::vendor,
    .adds = "oneDNN's matmul primitive, B prepacked",
    .threaded = true,
    .prepacked = true,
};

const Registration registration{info, make_plan<Matmul, OneDnn<true>>};

}  // namespace
}  // namespace stepladder::matmul

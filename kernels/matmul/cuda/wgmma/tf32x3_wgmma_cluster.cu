// tf32x3_wgmma in clusters of two blocks, as in tf32_wgmma_cluster: each loads half of both parts
// of the shared operand for both blocks. A stage reads (128 + 128) · 32 floats from L2 instead of
// (128 + 2 · 128) · 32: 96 FLOPs per byte instead of 64, at the peak 5.2 TB/s instead of 7.7.
// Expected gain over tf32x3_wgmma: 1 to 1.3.
#include "kernels/common/cuda/wgmma_accumulators.hpp"
#include "kernels/matmul/cuda/wgmma/wgmma_plan.hpp"

namespace stepladder::matmul {
namespace {

constexpr VariantInfo info{
    .name = "tf32x3_wgmma_cluster",
    .technique = Technique::cuda,
    .builds_on = "tf32x3_wgmma",
    .adds = "pairs of blocks: each loads half of their common operand tile for both (multicast)",
    .idea = Idea::shared_memory,
    .place = Place::cuda,
    .epilogue = true,
    .bound_factor = 3,
    .operand_error = 0x1p-21,
};

const Registration registration{
    info, make_wgmma_plan<2, Tf32x3Accumulators<128>, Tf32x3Accumulators<64>>};

}  // namespace
}  // namespace stepladder::matmul

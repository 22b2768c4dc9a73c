// tf32x3_wgmma's blocks in pairs, as in tf32_wgmma_cluster: each loads half of both parts of the
// second factor, for both blocks. A stage takes (128 + 128) · 32 floats from the second-level cache instead
// of (128 + 2 · 128) · 32, so 96 FLOPs of its three products for each byte instead of 64: at the peak 5.2 TB/s
// instead of 7.7. Expected gain over tf32x3_wgmma: 1 to 1.3.
#include "kernels/common/cuda/wgmma_accumulators.hpp"
#include "kernels/matmul/cuda/wgmma/wgmma_plan.hpp"

namespace stepladder::matmul {
namespace {

using Sums = Tf32x3Sums<128>;  // two for each element: no registers are left for more columns

constexpr VariantInfo info{
    .name = "tf32x3_wgmma_cluster",
    .technique = Technique::cuda,
    .builds_on = "tf32x3_wgmma",
    .adds = "pairs of blocks that load each box of the second factor once, for both",
    .place = Place::cuda,
    .epilogue = true,
    .bound_factor = 3,
    .operand_error = 0x1p-21,
};

const Registration registration{info, make_wgmma_plan<Sums, Sums, 2>};

}  // namespace
}  // namespace stepladder::matmul

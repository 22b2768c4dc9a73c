// tf32_wgmma in clusters of two blocks that share the shared operand. Two tiles of C below each
// other need the same columns of it: each block loads half of them, and the TMA multicasts it to
// both. That lowers the traffic from L2, which bounds tf32_wgmma:
//
//     stage of 32 l, per block     register operand     shared operand     FLOPs per byte
//     tf32_wgmma                   16 KB                32 KB              43
//     here                         16 KB                16 KB              64
//
// At 4096³ 512 tiles read 3.2 GB from L2 without clusters and 2.1 GB with them, in the 278 us of
// TF32's peak 11.6 or 7.7 TB/s. The gain is 1.5 if L2 bounds both, and less where the tensor cores
// bound first. Expected: 1.1 to 1.5 for a large C, 1 for a small one.
//
// Source: CUDA Programming Guide, "Thread Block Clusters"; PTX ISA, cp.async.bulk.tensor with
// .multicast::cluster. Error bound: see tf32_wgmma.cu.
#include "kernels/common/cuda/wgmma_accumulators.hpp"
#include "kernels/matmul/cuda/wgmma/wgmma_plan.hpp"

namespace stepladder::matmul {
namespace {

constexpr VariantInfo info{
    .name = "tf32_wgmma_cluster",
    .technique = Technique::cuda,
    .builds_on = "tf32_wgmma",
    .adds = "pairs of blocks: each loads half of their common operand tile for both (multicast)",
    .idea = Idea::shared_memory,
    .precision = Precision::tf32,
    .place = Place::cuda,
    .epilogue = true,
    .bound_factor = 3,
    .operand_error = 0x1p-9 + 0x1p-20,
};

const Registration registration{
    info, make_wgmma_plan<2, Tf32Accumulators<256>, Tf32Accumulators<128>, Tf32Accumulators<64>>};

}  // namespace
}  // namespace stepladder::matmul

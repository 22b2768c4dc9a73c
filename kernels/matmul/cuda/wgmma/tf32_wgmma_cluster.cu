// tf32_wgmma's blocks in pairs that share what they read. Two tiles of C below each other have the
// columns of the second factor in common: each block of a cluster of two loads half of them, and the TMA
// writes it to both (multicast). The second-level cache, which all of them read from, is asked once.
//
//     for a stage of 32 l, of each block     first      second      FLOPs for a byte
//     tf32_wgmma                             16 KB      32 KB       43
//     here                                   16 KB      16 KB       64
//
// At 4096³ 512 tiles take 3.2 GB from that cache, or 2.1 GB here; in the 278 microseconds of TF32's peak
// 11.6 or 7.7 TB/s. Where the cache binds both, the gain is 1.5; where the tensor cores bind first, it is
// what is left to their peak. Expected: 1.1 to 1.5 for a large C, 1 for a small one.
//
// Source of the plan: CUDA Programming Guide, "Thread Block Clusters"; PTX ISA, cp.async.bulk.tensor with
// .multicast::cluster. The bound: see tf32_wgmma.cu.
#include "kernels/common/cuda/wgmma_accumulators.hpp"
#include "kernels/matmul/cuda/wgmma/wgmma_plan.hpp"

namespace stepladder::matmul {
namespace {

constexpr VariantInfo info{
    .name = "tf32_wgmma_cluster",
    .technique = Technique::cuda,
    .builds_on = "tf32_wgmma",
    .adds = "pairs of blocks that load each box of the second factor once, for both",
    .precision = "tf32",
    .place = Place::cuda,
    .epilogue = true,
    .bound_factor = 3,
    .operand_error = 0x1p-9 + 0x1p-20,
};

const Registration registration{info, make_wgmma_plan<Tf32Sums<256>, Tf32Sums<128>, 2>};

}  // namespace
}  // namespace stepladder::matmul

// tf32_tensor_core with split-K, for the thin products of a small network. A C of 64 x 512 has 4
// tiles of 128 x 128 there and 2 in tf32_wgmma, for 132 multiprocessors. Here it has eight tiles of
// 64 x 64, each divided into up to eight slices of K. The blocks of a cluster compute the slices
// and reduce them in shared memory: one launch, no workspace (tensor_split_k.hpp).
//
// Expected gain over tf32_tensor_core: 3 to 4 at 64 x 512 x 784 (49 steps of 512 cycles, 16 us with
// the launch, against 7 steps of 128 cycles, 4 to 5 us); none where C has more tiles than the GPU
// multiprocessors. The README derives how many bytes are in flight. Error bound: see
// tf32_tensor_core.cu.
#include "kernels/matmul/cuda/tensor_core/tensor_split_k.hpp"
#include "kernels/matmul/cuda/tensor_core/tf32.hpp"

namespace stepladder::matmul {
namespace {

using Tile = TensorTile<Tf32, 64, 32, 32>;

constexpr VariantInfo info{
    .name = "tf32_split_k",
    .technique = Technique::cuda,
    .builds_on = "tf32_tensor_core",
    .adds = "split-K: a cluster reduces its slices of K in shared memory; 64 x 64 tiles",
    .idea = Idea::threads,
    .precision = Precision::tf32,
    .place = Place::cuda,
    .epilogue = true,
    .bound_factor = 3,
    .operand_error = 0x1p-10 + 0x1p-22,
};

const Registration registration{info, make_tensor_split_k_plan<Tile>};

}  // namespace
}  // namespace stepladder::matmul

// tf32_split_k with the 3xTF32 products of tf32x3 (tensor_split_k.hpp). Expected gain over tf32x3:
// that of tf32_split_k over tf32_tensor_core. Over split_k 1.5 to 2 where launches dominate, since
// it needs one instead of two.
#include "kernels/matmul/cuda/tensor_core/tensor_split_k.hpp"
#include "kernels/matmul/cuda/tensor_core/tf32x3.hpp"

namespace stepladder::matmul {
namespace {

using Tile = TensorTile<Tf32x3, 64, 32, 32>;

constexpr VariantInfo info{
    .name = "tf32x3_split_k",
    .technique = Technique::cuda,
    .builds_on = "tf32x3",
    .adds = "split-K: a cluster reduces its slices of K in shared memory; 64 x 64 tiles",
    .idea = Idea::threads,
    .place = Place::cuda,
    .epilogue = true,
    .bound_factor = 3,
    .operand_error = 0x1p-21,
};

const Registration registration{info, make_tensor_split_k_plan<Tile>};

}  // namespace
}  // namespace stepladder::matmul

// tf32_split_k with the accuracy of fp32: tf32x3's products in tiles of 64 x 64 and slices of k, which
// the blocks of a cluster add. See cuda_tensor_split.hpp. Expected gain over tf32x3: as tf32_split_k's
// over tf32_tensor_core; over split_k 1.5 to 2 where launches count, for the one launch that it saves.
#include "kernels/matmul/cuda/tensor_core/tensor_split_k.hpp"
#include "kernels/matmul/cuda/tensor_core/tf32x3.hpp"

namespace stepladder::matmul {
namespace {

using Tile = TensorTile<Tf32x3, 64, 32, 32>;

constexpr VariantInfo info{
    .name = "tf32x3_split_k",
    .technique = Technique::cuda,
    .builds_on = "tf32x3",
    .adds = "slices of k that the blocks of a cluster add in shared memory, and tiles of 64 x 64",
    .place = Place::cuda,
    .epilogue = true,
    .bound_factor = 3,
    .operand_error = 0x1p-21,
};

const Registration registration{info, make_tensor_split_plan<Tile>};

}  // namespace
}  // namespace stepladder::matmul

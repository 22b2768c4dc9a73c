// tf32_split_k with the accuracy of fp32: three_tf32's products in tiles of 64 x 64 and slices of k, which
// the blocks of a cluster add. See cuda_tensor_split.hpp. Expected gain over three_tf32: as tf32_split_k's
// over tf32_tensor_core; over split_k 1.5 to 2 where launches count, for the one launch that it saves.
#include "kernels/matmul/cuda_tensor_split.hpp"
#include "kernels/matmul/cuda_three_tf32.hpp"

namespace stepladder::matmul {
namespace {

using Tile = TensorTile<ThreeTf32, 64, 32, 32>;

constexpr VariantInfo info{
    .name = "three_tf32_split_k",
    .technique = Technique::cuda,
    .builds_on = "three_tf32",
    .adds = "slices of k that the blocks of a cluster add in shared memory, and tiles of 64 x 64",
    .place = Place::cuda,
    .epilogue = true,
    .bound_factor = 3,
    .operand_error = 0x1p-21,
};

const Registration registration{info, make_tensor_split_plan<Tile>};

}  // namespace
}  // namespace stepladder::matmul

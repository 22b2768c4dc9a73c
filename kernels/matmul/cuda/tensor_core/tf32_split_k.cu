// tf32_tensor_core for the thin products of a small network. A C of 64 x 512 is 4 tiles of 128 x 128
// there and 2 in tf32_wgmma, for 132 multiprocessors. Here the tiles are 64 x 64, eight of them, each
// cut into up to eight slices of k, which the blocks of a cluster take and add among themselves: one
// launch, no workspace. cuda_tensor_split.hpp tells how, and what it saves.
//
// What is in flight. k = 784 is 49 steps of 16: of eight slices one takes seven, the others six, all
// of which a block has asked for before it waits for the first: 49 or 57 KB a multiprocessor, 3.2 MB
// in 64 of them, nearly the 3.4 MB that 4.3 TB/s bring in the 0.8 microseconds that the memory takes
// to answer. Larger tiles would read less (a 64 x 64 tile does 16 FLOPs for each byte), and leave more
// multiprocessors idle: 1.8 MB of factors are these 3.2 MB to the multiprocessors, 0.6 microseconds.
//
// Expected gain over tf32_tensor_core: 3 to 4 at 64 x 512 x 784 (49 steps of 512 cycles, 16 microseconds
// with the launch, against 7 steps of 128, 4 to 5 with it); none where C has more tiles than the GPU
// multiprocessors. The bound: see tf32_tensor_core.cu.
#include "kernels/matmul/cuda/tensor_core/tensor_split_k.hpp"
#include "kernels/matmul/cuda/tensor_core/tf32.hpp"

namespace stepladder::matmul {
namespace {

using Tile = TensorTile<Tf32, 64, 32, 32>;

constexpr VariantInfo info{
    .name = "tf32_split_k",
    .technique = Technique::cuda,
    .builds_on = "tf32_tensor_core",
    .adds = "slices of k that the blocks of a cluster add in shared memory, and tiles of 64 x 64",
    .precision = "tf32",
    .place = Place::cuda,
    .epilogue = true,
    .bound_factor = 3,
    .operand_error = 0x1p-10 + 0x1p-22,
};

const Registration registration{info, make_tensor_split_plan<Tile>};

}  // namespace
}  // namespace stepladder::matmul

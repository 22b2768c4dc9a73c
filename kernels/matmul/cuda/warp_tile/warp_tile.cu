// vectorized with a tile for each warp, and with asynchronous copies.
//
// Warp tiles: vectorized gives a warp 16 x 128 of a block's 128 x 128 elements, for which it reads
// 16 + 128 floats of shared memory per step of K. A warp tile of 32 x 64 needs 32 + 64 for as many
// products.
//
// Copies: cp.async fills a second pair of tiles with the next 16 steps of K while the block
// computes on the first. There is one barrier per 16 steps, and no thread waits for memory.
//
// Expected gain: 1.2 to 1.5, to nine tenths of cuBLAS at 4096³. 88 % of the loop's instructions are
// FFMA, 79 % in vectorized (instruction counts in the README). warp_tile.hpp shows the tile; the
// three levels are described in CUTLASS, "Efficient GEMM in CUDA".
#include "kernels/common/cuda/plan.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/matmul/cuda/tile_grid.hpp"
#include "kernels/matmul/cuda/warp_tile/warp_tile.hpp"

namespace stepladder::matmul {
namespace {

constexpr int tile = WarpTile::tile;

template <bool transpose_a, bool transpose_b, bool vectors>
__global__ void __launch_bounds__(WarpTile::threads, 2) multiply_kernel(Problem p, Operands o) {
  const TileOrigin origin = tile_origin<tile, tile>(p, blockIdx.x);
  const int steps = static_cast<int>(ceil_div(p.k, WarpTile::tile_k));
  WarpTile block_tile;
  block_tile.multiply<!transpose_a, transpose_b, vectors>(operand_a(p, o), operand_b(p, o), origin,
                                                          0, steps);
  block_tile.for_each_four([&](int i, int j, const float* four) {
    store_contiguous<4, vectors>(p, o, origin.row + i, origin.column + j, four);
  });
}

void multiply(const Problem& p, const Operands& o) {
  const auto start = [&]<bool transpose_a, bool transpose_b, bool vectors>() {
    launch(multiply_kernel<transpose_a, transpose_b, vectors>,
           {tile_count<tile, tile>(p), WarpTile::threads}, p, o);
  };
  dispatch(start, p.transpose_a, p.transpose_b, tile_allows_vectors(p, o));
}

std::unique_ptr<Plan> make(const Problem& problem, const Resources& resources) {
  require_compute_capability(80);
  require_32_bit_offsets(problem);
  return plan_of<multiply>(problem, resources);
}

constexpr VariantInfo info{
    .name = "warp_tile",
    .technique = Technique::cuda,
    .builds_on = "vectorized",
    .adds = "a tile for each warp; the next tiles are copied asynchronously (cp.async)",
    .idea = Idea::pipelining,
    .place = Place::cuda,
    .epilogue = true,
};

const Registration registration{info, make};

}  // namespace
}  // namespace stepladder::matmul

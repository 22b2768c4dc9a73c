// vectorized with a third level of tiles, the warp's, and with copies that nobody waits for.
//
// The warp. Of a block's 128 x 128 elements of C vectorized gives a warp 16 x 128, for which it
// reads 16 + 128 floats of shared memory at each l; 32 x 64, nearer to a square, needs 32 + 64 for
// as many sums.
// The copies. cp.async brings the next 16 l into a second pair of tiles while the block computes
// with the first: one barrier for 16 l, no register in between, and no wait for the memory.
//
// nvcc 13.0 makes of the loop for sm_90a 1158 instructions (nn; 1163 nt, 1145 tn), 1024 of them
// FFMA: at best 88 % of the fp32 peak, against 79 % in vectorized. Expected gain: 1.2 to 1.5, to
// nine tenths of cuBLAS at 4096³. The tile is drawn in cuda_warp_tile.hpp; CUTLASS, "Efficient GEMM in CUDA",
// tells of the three levels.
#include "kernels/common/cuda/plan.hpp"
#include "kernels/matmul/cuda/tile_grid.hpp"
#include "kernels/matmul/cuda/warp_tile/warp_tile.hpp"

namespace stepladder::matmul {
namespace {

constexpr int tile = WarpTile::tile;

template <bool transpose_a, bool transpose_b, bool vectors>
__global__ void __launch_bounds__(WarpTile::threads, 2) multiply_kernel(Problem p, Operands o) {
  const Corner corner = tile_start<tile, tile>(p, blockIdx.x);
  const int steps = static_cast<int>((p.k + WarpTile::depth - 1) / WarpTile::depth);
  WarpTile sums;
  sums.multiply<!transpose_a, transpose_b, vectors>(factor_a(p, o), factor_b(p, o), corner, 0,
                                                    steps);
  sums.for_each_four([&](int i, int j, const float* four) {
    store_neighbours<4, vectors>(p, o, corner.row + i, corner.column + j, four);
  });
}

void multiply(const Problem& p, const Operands& o) {
  const auto start = [&]<bool transpose_a, bool transpose_b, bool vectors>() {
    launch(multiply_kernel<transpose_a, transpose_b, vectors>,
           {tiles_of<tile, tile>(p), WarpTile::threads}, p, o);
  };
  choose(start, p.transpose_a, p.transpose_b, tile_in_vectors(p, o));
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
    .adds = "a tile for each warp, and the next tiles copied asynchronously while these are used",
    .place = Place::cuda,
    .epilogue = true,
};

const Registration registration{info, make};

}  // namespace
}  // namespace stepladder::matmul

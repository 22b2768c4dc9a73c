// A block computes a 32 x 32 tile of C and shares what it reads: for each step along K it copies a
// tile of A and one of B into shared memory. A float from global memory serves 32 threads instead
// of one, 32 / 4 = 8 products per byte; naive leaves the reuse to the caches. Expected gain: 1.5 to
// 3. The next limit is shared memory, with two loads per product (CUDA C++ Best Practices Guide,
// "Shared Memory in Matrix Multiplication").
//
//                    l →            j →
//     C tile =  i ↓ [A tile]  · l ↓ [B tile]   summed over the tiles along K
//
// Neighbouring threads read neighbours in global memory under every transpose. A transposed operand
// is stored down the columns of its tile; rows of 33 floats avoid bank conflicts.
#include "kernels/common/cuda/plan.hpp"
#include "kernels/matmul/cuda/operand.hpp"
#include "kernels/matmul/cuda/store.hpp"
#include "kernels/matmul/cuda/tile_grid.hpp"

namespace stepladder::matmul {
namespace {

constexpr int side = 32;
using Tile = float[side][side + 1];

__global__ void __launch_bounds__(side* side) multiply_kernel(Problem p, Operands o) {
  __shared__ Tile a_tile;  // [i, l]
  __shared__ Tile b_tile;  // [l, j]
  const Operand a = operand_a(p, o), b = operand_b(p, o);
  const auto [row, column] = tile_origin<side, side>(p, blockIdx.x);
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);

  float sum = 0;
  for (std::int64_t l = 0; l < p.k; l += side) {
    if (a.k_contiguous)
      a_tile[y][x] = a.element_or_zero(row + y, l + x);
    else
      a_tile[x][y] = a.element_or_zero(row + x, l + y);
    if (b.k_contiguous)
      b_tile[x][y] = b.element_or_zero(column + y, l + x);
    else
      b_tile[y][x] = b.element_or_zero(column + x, l + y);
    __syncthreads();
    for (int step = 0; step < side; ++step) sum += a_tile[y][step] * b_tile[step][x];
    __syncthreads();  // before the tiles are overwritten
  }
  store(p, o, row + y, column + x, sum);
}

void multiply(const Problem& p, const Operands& o) {
  launch(multiply_kernel, {tile_count<side, side>(p), dim3(side, side)}, p, o);
}

constexpr VariantInfo info{
    .name = "shared_memory",
    .technique = Technique::cuda,
    .builds_on = "coalesced",
    .adds = "32 x 32 tiles of A and B in shared memory, each float read once for 32 threads",
    .idea = Idea::shared_memory,
    .place = Place::cuda,
    .epilogue = true,
};

const Registration registration{info, make_cuda_plan<Matmul, multiply>};

}  // namespace
}  // namespace stepladder::matmul

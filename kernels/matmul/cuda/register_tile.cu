// shared_memory makes two loads for each product. Here a thread computes 8 x 8 elements of C in
// registers: 16 loads from shared memory serve 64 products, and a block's tile of 128 x 128 reads
// each float of global memory once for 128 rows or columns: 32 products a byte. Expected gain: 3 to
// 5, as arithmetic and no longer shared memory sets the pace (Volkov and Demmel, "Benchmarking GPUs
// to Tune Dense Linear Algebra", SC 2008).
//
//     C tile, 128 x 128, of 16 x 16 threads: thread (y, x) has rows y, y + 16, … and columns x,
//     x + 16, …, so that neighbouring threads read neighbouring banks and write neighbours of C.
#include "kernels/common/cuda/plan.hpp"
#include "kernels/matmul/cuda/tile_grid.hpp"
#include "kernels/matmul/cuda/operand.hpp"
#include "kernels/matmul/cuda/store.hpp"

namespace stepladder::matmul {
namespace {

constexpr int threads_a_side = 16, threads = threads_a_side * threads_a_side;
constexpr int sums = 8;  // a side of each thread's square
constexpr int tile = threads_a_side * sums;
constexpr int depth = 8;

// Four floats more, so that 8 threads along l and 4 along x store to 32 different banks.
using FactorTile = float[depth][tile + 4];

// Neighbouring threads read neighbours in global memory.
__device__ void load(const Factor& factor, std::int64_t x, std::int64_t l, FactorTile& to) {
  for (int i = static_cast<int>(threadIdx.x); i < depth * tile; i += threads) {
    const int dl = factor.along_depth ? i % depth : i / tile;
    const int dx = factor.along_depth ? i / depth : i % tile;
    to[dl][dx] = factor.element_or_zero(x + dx, l + dl);
  }
}

__global__ void __launch_bounds__(threads) multiply_kernel(Problem p, Operands o) {
  __shared__ FactorTile a_tile, b_tile;  // [l, i] and [l, j]
  const auto [row, column] = tile_start<tile, tile>(p, blockIdx.x);
  const int y = static_cast<int>(threadIdx.x) / threads_a_side;
  const int x = static_cast<int>(threadIdx.x) % threads_a_side;

  float c[sums][sums] = {};
  for (std::int64_t l = 0; l < p.k; l += depth) {
    load(factor_a(p, o), row, l, a_tile);
    load(factor_b(p, o), column, l, b_tile);
    __syncthreads();
#pragma unroll
    for (int step = 0; step < depth; ++step) {
      float a[sums], b[sums];
#pragma unroll
      for (int i = 0; i < sums; ++i) a[i] = a_tile[step][y + i * threads_a_side];
#pragma unroll
      for (int j = 0; j < sums; ++j) b[j] = b_tile[step][x + j * threads_a_side];
#pragma unroll
      for (int i = 0; i < sums; ++i)
#pragma unroll
        for (int j = 0; j < sums; ++j) c[i][j] += a[i] * b[j];
    }
    __syncthreads();
  }

#pragma unroll
  for (int i = 0; i < sums; ++i)
#pragma unroll
    for (int j = 0; j < sums; ++j)
      store(p, o, row + y + i * threads_a_side, column + x + j * threads_a_side, c[i][j]);
}

void multiply(const Problem& p, const Operands& o) {
  launch(multiply_kernel, {tiles_of<tile, tile>(p), threads}, p, o);
}

constexpr VariantInfo info{
    .name = "register_tile",
    .technique = Technique::cuda,
    .builds_on = "shared_memory",
    .adds = "8 x 8 sums in each thread's registers: 16 shared loads for 64 products",
    .place = Place::cuda,
    .epilogue = true,
};

const Registration registration{info, make_cuda_plan<Matmul, multiply>};

}  // namespace
}  // namespace stepladder::matmul

// A thread computes 8 x 8 elements of C in registers: 16 loads from shared memory serve 64
// products, where shared_memory needs two loads per product. A block computes 128 x 128 elements,
// so a float from global memory serves 128 rows or columns: 32 products per byte. Expected gain: 3
// to 5, since arithmetic is the limit instead of shared memory (Volkov and Demmel, "Benchmarking
// GPUs to Tune Dense Linear Algebra", SC 2008).
//
//     C tile, 128 x 128, of 16 x 16 threads: thread (y, x) has rows y, y + 16, … and columns
//     x, x + 16, …, so neighbouring threads read neighbouring banks and write neighbours of C.
#include "kernels/common/cuda/plan.hpp"
#include "kernels/matmul/cuda/operand.hpp"
#include "kernels/matmul/cuda/store.hpp"
#include "kernels/matmul/cuda/tile_grid.hpp"

namespace stepladder::matmul {
namespace {

constexpr int side_threads = 16, threads = side_threads * side_threads;
constexpr int thread_tile = 8;  // rows and columns of a thread
constexpr int tile = side_threads * thread_tile;
constexpr int tile_k = 8;

// Four floats of padding: 8 threads along l and 4 along x store to 32 different banks.
using OperandTile = float[tile_k][tile + 4];

// Neighbouring threads read neighbours in global memory.
__device__ void load(const Operand& operand, std::int64_t x, std::int64_t l, OperandTile& to) {
  for (int i = static_cast<int>(threadIdx.x); i < tile_k * tile; i += threads) {
    const int dl = operand.k_contiguous ? i % tile_k : i / tile;
    const int dx = operand.k_contiguous ? i / tile_k : i % tile;
    to[dl][dx] = operand.element_or_zero(x + dx, l + dl);
  }
}

__global__ void __launch_bounds__(threads) multiply_kernel(Problem p, Operands o) {
  __shared__ OperandTile a_tile, b_tile;  // [l, i] and [l, j]
  const auto [row, column] = tile_origin<tile, tile>(p, blockIdx.x);
  const int y = static_cast<int>(threadIdx.x) / side_threads;
  const int x = static_cast<int>(threadIdx.x) % side_threads;

  float c[thread_tile][thread_tile] = {};
  for (std::int64_t l = 0; l < p.k; l += tile_k) {
    load(operand_a(p, o), row, l, a_tile);
    load(operand_b(p, o), column, l, b_tile);
    __syncthreads();
#pragma unroll
    for (int step = 0; step < tile_k; ++step) {
      float a[thread_tile], b[thread_tile];
#pragma unroll
      for (int i = 0; i < thread_tile; ++i) a[i] = a_tile[step][y + i * side_threads];
#pragma unroll
      for (int j = 0; j < thread_tile; ++j) b[j] = b_tile[step][x + j * side_threads];
#pragma unroll
      for (int i = 0; i < thread_tile; ++i)
#pragma unroll
        for (int j = 0; j < thread_tile; ++j) c[i][j] += a[i] * b[j];
    }
    __syncthreads();
  }

#pragma unroll
  for (int i = 0; i < thread_tile; ++i)
#pragma unroll
    for (int j = 0; j < thread_tile; ++j)
      store(p, o, row + y + i * side_threads, column + x + j * side_threads, c[i][j]);
}

void multiply(const Problem& p, const Operands& o) {
  launch(multiply_kernel, {tile_count<tile, tile>(p), threads}, p, o);
}

constexpr VariantInfo info{
    .name = "register_tile",
    .technique = Technique::cuda,
    .builds_on = "shared_memory",
    .adds = "8 x 8 accumulators per thread: 16 shared loads for 64 products",
    .idea = Idea::register_tile,
    .place = Place::cuda,
    .epilogue = true,
};

const Registration registration{info, make_cuda_plan<Matmul, multiply>};

}  // namespace
}  // namespace stepladder::matmul

// register_tile with 128-bit loads and stores, a quarter of the instructions that are not
// multiply-adds: 4 loads from shared memory for 64 products, one load from global memory per
// operand and step. Expected gain: 1.3 to 1.5 (S. Boehm, "How to Optimize a CUDA Matmul Kernel",
// 2022, kernel 6). A thread reads four neighbours along l of a K-contiguous operand and stores them
// down a column of the tile, so that the inner loop reads rows of both tiles.
//
//     C tile, 128 x 128, of 16 x 16 threads: thread (y, x) has rows 4y … 4y + 3 and 64 + 4y …
//     64 + 4y + 3, columns 4x … 4x + 3 and 64 + 4x … 64 + 4x + 3.
//
// Vectors must be aligned to their size. If the rows of a matrix are not, a kernel with scalar
// loads and stores runs.
#include "kernels/common/cuda/plan.hpp"
#include "kernels/matmul/cuda/operand.hpp"
#include "kernels/matmul/cuda/store.hpp"
#include "kernels/matmul/cuda/tile_grid.hpp"

namespace stepladder::matmul {
namespace {

constexpr int side_threads = 16, threads = side_threads * side_threads;
constexpr int tile = 128, half = tile / 2;
constexpr int tile_k = 8;

// Four floats of padding: the threads of a warp store transposed vectors without bank conflicts.
using OperandTile = float[tile_k][tile + 4];

__device__ float4 load_vector(const Operand& operand, std::int64_t x, std::int64_t l) {
  if (!operand.holds(x, l)) return make_float4(0, 0, 0, 0);
  return *reinterpret_cast<const float4*>(operand.address(x, l));
}

template <bool vectors>
__device__ void load(const Operand& operand, std::int64_t x, std::int64_t l, OperandTile& to) {
  static_assert(threads * 4 == tile_k * tile);  // a vector per thread
  const int t = static_cast<int>(threadIdx.x);
  if constexpr (!vectors) {
    for (int i = t; i < tile_k * tile; i += threads) {
      const int dl = operand.k_contiguous ? i % tile_k : i / tile;
      const int dx = operand.k_contiguous ? i / tile_k : i % tile;
      to[dl][dx] = operand.element_or_zero(x + dx, l + dl);
    }
  } else if (operand.k_contiguous) {
    const int dx = t / (tile_k / 4), dl = t % (tile_k / 4) * 4;
    const float4 v = load_vector(operand, x + dx, l + dl);
    to[dl][dx] = v.x, to[dl + 1][dx] = v.y, to[dl + 2][dx] = v.z, to[dl + 3][dx] = v.w;
  } else {
    const int dl = t / (tile / 4), dx = t % (tile / 4) * 4;
    *reinterpret_cast<float4*>(&to[dl][dx]) = load_vector(operand, x + dx, l + dl);
  }
}

// Loads elements 4 `at` … 4 `at` + 3 of a row of a tile, and the same of its second half.
__device__ void load_row(const float (&row)[tile + 4], int at, float (&to)[8]) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const float4 v = *reinterpret_cast<const float4*>(&row[h * half + 4 * at]);
    to[4 * h] = v.x, to[4 * h + 1] = v.y, to[4 * h + 2] = v.z, to[4 * h + 3] = v.w;
  }
}

template <bool vectors>
__global__ void __launch_bounds__(threads) multiply_kernel(Problem p, Operands o) {
  __shared__ __align__(16) OperandTile a_tile;  // [l, i]
  __shared__ __align__(16) OperandTile b_tile;  // [l, j]
  const auto [row, column] = tile_origin<tile, tile>(p, blockIdx.x);
  const int y = static_cast<int>(threadIdx.x) / side_threads;
  const int x = static_cast<int>(threadIdx.x) % side_threads;

  float c[8][8] = {};
  for (std::int64_t l = 0; l < p.k; l += tile_k) {
    load<vectors>(operand_a(p, o), row, l, a_tile);
    load<vectors>(operand_b(p, o), column, l, b_tile);
    __syncthreads();
#pragma unroll
    for (int step = 0; step < tile_k; ++step) {
      float a[8], b[8];
      load_row(a_tile[step], y, a);
      load_row(b_tile[step], x, b);
#pragma unroll
      for (int i = 0; i < 8; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j) c[i][j] += a[i] * b[j];
    }
    __syncthreads();
  }

#pragma unroll
  for (int i = 0; i < 8; ++i)
#pragma unroll
    for (int h = 0; h < 2; ++h)
      store_contiguous<4, vectors>(p, o, row + i / 4 * half + 4 * y + i % 4,
                                   column + h * half + 4 * x, &c[i][4 * h]);
}

void multiply(const Problem& p, const Operands& o) {
  launch(allows_vectors(p, o) ? multiply_kernel<true> : multiply_kernel<false>,
         {tile_count<tile, tile>(p), threads}, p, o);
}

constexpr VariantInfo info{
    .name = "vectorized",
    .technique = Technique::cuda,
    .builds_on = "register_tile",
    .adds = "128-bit loads and stores of shared and global memory",
    .idea = Idea::vectors,
    .place = Place::cuda,
    .epilogue = true,
};

const Registration registration{info, make_cuda_plan<Matmul, multiply>};

}  // namespace
}  // namespace stepladder::matmul

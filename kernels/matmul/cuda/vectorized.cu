// register_tile with its loads and stores in vectors of 128 bits, a quarter of the instructions
// that are not multiply-adds: of shared memory 4 loads for 64 products, of global memory one for
// each factor and step. A thread reads four neighbours along l of a factor that lies that way and
// stores them down a column of the tile, so that the inner loop finds both factors in rows.
// Expected gain: 1.3 to 1.5 (S. Boehm, "How to Optimize a CUDA Matmul Kernel", 2022, kernel 6,
// describes the step).
//
//     C tile, 128 x 128, of 16 x 16 threads: thread (y, x) has the rows 4y … 4y + 3 and those 64
//     further on, the columns 4x … 4x + 3 and those 64 further on.
//
// A GPU reads a vector only from a multiple of its size: where the rows of a matrix do not all
// begin at one, the kernel of single floats runs.
#include "kernels/common/cuda/plan.hpp"
#include "kernels/matmul/cuda/tile_grid.hpp"
#include "kernels/matmul/cuda/operand.hpp"
#include "kernels/matmul/cuda/store.hpp"

namespace stepladder::matmul {
namespace {

constexpr int threads_a_side = 16, threads = threads_a_side * threads_a_side;
constexpr int tile = 128, half = tile / 2;
constexpr int depth = 8;

// Four floats more: the 32 threads of a warp store a turned vector to 32 different banks.
using FactorTile = float[depth][tile + 4];

__device__ float4 four_of(const Factor& factor, std::int64_t x, std::int64_t l) {
  if (!factor.holds(x, l)) return make_float4(0, 0, 0, 0);
  return *reinterpret_cast<const float4*>(factor.address(x, l));
}

template <bool vectors>
__device__ void load(const Factor& factor, std::int64_t x, std::int64_t l, FactorTile& to) {
  static_assert(threads * 4 == depth * tile);  // a vector for each thread
  const int t = static_cast<int>(threadIdx.x);
  if constexpr (!vectors) {
    for (int i = t; i < depth * tile; i += threads) {
      const int dl = factor.along_depth ? i % depth : i / tile;
      const int dx = factor.along_depth ? i / depth : i % tile;
      to[dl][dx] = factor.element_or_zero(x + dx, l + dl);
    }
  } else if (factor.along_depth) {
    const int dx = t / (depth / 4), dl = t % (depth / 4) * 4;
    const float4 v = four_of(factor, x + dx, l + dl);
    to[dl][dx] = v.x, to[dl + 1][dx] = v.y, to[dl + 2][dx] = v.z, to[dl + 3][dx] = v.w;
  } else {
    const int dl = t / (tile / 4), dx = t % (tile / 4) * 4;
    *reinterpret_cast<float4*>(&to[dl][dx]) = four_of(factor, x + dx, l + dl);
  }
}

// Elements 4 `at` … 4 `at` + 3 of a row of a tile, and those half a tile further.
__device__ void take(const float (&row)[tile + 4], int at, float (&to)[8]) {
#pragma unroll
  for (int part = 0; part < 2; ++part) {
    const float4 v = *reinterpret_cast<const float4*>(&row[part * half + 4 * at]);
    to[4 * part] = v.x, to[4 * part + 1] = v.y, to[4 * part + 2] = v.z, to[4 * part + 3] = v.w;
  }
}

template <bool vectors>
__global__ void __launch_bounds__(threads) multiply_kernel(Problem p, Operands o) {
  __shared__ __align__(16) FactorTile a_tile;  // [l, i]
  __shared__ __align__(16) FactorTile b_tile;  // [l, j]
  const auto [row, column] = tile_start<tile, tile>(p, blockIdx.x);
  const int y = static_cast<int>(threadIdx.x) / threads_a_side;
  const int x = static_cast<int>(threadIdx.x) % threads_a_side;

  float c[8][8] = {};
  for (std::int64_t l = 0; l < p.k; l += depth) {
    load<vectors>(factor_a(p, o), row, l, a_tile);
    load<vectors>(factor_b(p, o), column, l, b_tile);
    __syncthreads();
#pragma unroll
    for (int step = 0; step < depth; ++step) {
      float a[8], b[8];
      take(a_tile[step], y, a);
      take(b_tile[step], x, b);
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
    for (int part = 0; part < 2; ++part)
      store_neighbours<4, vectors>(p, o, row + i / 4 * half + 4 * y + i % 4,
                                   column + part * half + 4 * x, &c[i][4 * part]);
}

void multiply(const Problem& p, const Operands& o) {
  launch(in_vectors(p, o) ? multiply_kernel<true> : multiply_kernel<false>,
         {tiles_of<tile, tile>(p), threads}, p, o);
}

constexpr VariantInfo info{
    .name = "vectorized",
    .technique = Technique::cuda,
    .builds_on = "register_tile",
    .adds = "128-bit loads and stores, of shared and of global memory",
    .place = Place::cuda,
    .epilogue = true,
};

const Registration registration{info, make_cuda_plan<Matmul, multiply>};

}  // namespace
}  // namespace stepladder::matmul

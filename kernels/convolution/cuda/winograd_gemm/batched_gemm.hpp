// Batched GEMM: C[i] = A[i] · B[i] for i < batch. A is stored [k, m], or [m, k] if K is contiguous;
// B is [k, n] or [n, k]; C is [m, n]. Rows of all matrices are padded to vectors of four floats,
// and the padding of C is zeros. Only .cu files include this.
#pragma once

#include "kernels/common/host_device.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/convolution/cuda/implicit_gemm/tile.hpp"

namespace stepladder::convolution {

struct BatchedGemm {
  int m, n, k, batch;
  int splits;       // split-K slices, each with results of its own
  bool accumulate;  // add to the results instead of overwriting them
};

STEPLADDER_HOST_DEVICE inline int padded(int count) { return round_up(count, 4); }

// Loads the tile of one operand whose rows (of A) or columns (of B) begin at `first`: a thread
// loads `count` vectors of four, `row_stride` rows apart.
template <class Tile, int extent, bool k_contiguous>
struct VectorLoader {
  static constexpr int row_vectors = (k_contiguous ? Tile::k : extent) / 4;
  static constexpr int row_stride = Tile::threads / row_vectors;
  static constexpr int count = extent * Tile::k / 4 / Tile::threads;
  static_assert(Tile::threads % row_vectors == 0 && count * Tile::threads * 4 == extent * Tile::k);
  const float* matrix;
  int first, size, k;  // size: m or n
  float4 values[count];

  __device__ static int row() { return static_cast<int>(threadIdx.x) / row_vectors; }
  __device__ static int column() { return static_cast<int>(threadIdx.x) % row_vectors * 4; }

  __device__ void load(int step) {
    const int start = step * Tile::k;
    const int rows = k_contiguous ? size : k, pitch = padded(k_contiguous ? k : size);
    const int first_row = row() + (k_contiguous ? first : start);
    const int first_column = column() + (k_contiguous ? start : first);
    const float* from = matrix + std::int64_t{first_row} * pitch + first_column;
#pragma unroll
    for (int j = 0; j < count; ++j) {
      values[j] = make_float4(0, 0, 0, 0);
      if (first_row + j * row_stride < rows && first_column < pitch)
        values[j] = *reinterpret_cast<const float4*>(from + std::int64_t{j} * row_stride * pitch);
    }
  }
  template <class Shared>
  __device__ void store(Shared& shared) const {
#pragma unroll
    for (int j = 0; j < count; ++j) {
      if constexpr (k_contiguous) {
        const int l = column(), x = row() + j * row_stride;
        shared[l][x] = values[j].x, shared[l + 1][x] = values[j].y;
        shared[l + 2][x] = values[j].z, shared[l + 3][x] = values[j].w;
      } else {
        *reinterpret_cast<float4*>(&shared[row() + j * row_stride][column()]) = values[j];
      }
    }
  }
};

// Grid: (matrix, split, columns), rows. c: [splits, batch, m, n]
template <class Tile, bool k_contiguous>
__global__ void __launch_bounds__(Tile::threads)
    batched_gemm_kernel(BatchedGemm p, const float* a, const float* b, float* c) {
  const int column_blocks = ceil_div(p.n, Tile::n);
  const int first_column = static_cast<int>(blockIdx.x) % column_blocks * Tile::n;
  const int split = static_cast<int>(blockIdx.x) / column_blocks % p.splits;
  const int matrix = static_cast<int>(blockIdx.x) / column_blocks / p.splits;
  const int first_row = static_cast<int>(blockIdx.y) * Tile::m;
  const std::int64_t steps = ceil_div(p.k, Tile::k);
  const int first = static_cast<int>(steps * split / p.splits);
  const int last = static_cast<int>(steps * (split + 1) / p.splits);
  const auto matrix_of = [&](const float* operand, int size) {
    return operand +
           std::int64_t{matrix} * (k_contiguous ? size : p.k) * padded(k_contiguous ? p.k : size);
  };

  typename Tile::Accumulators accumulators = {};
  VectorLoader<Tile, Tile::m, k_contiguous> loader_a{matrix_of(a, p.m), first_row, p.m, p.k, {}};
  VectorLoader<Tile, Tile::n, k_contiguous> loader_b{matrix_of(b, p.n), first_column, p.n, p.k, {}};
  gemm_main_loop<Tile>(loader_a, loader_b, first, last, accumulators);

  const int pitch = padded(p.n);
  float* to = c + (std::int64_t{split} * p.batch + matrix) * p.m * pitch;
#pragma unroll
  for (int i = 0; i < Tile::thread_m; ++i)
#pragma unroll
    for (int j = 0; j < Tile::thread_n; j += 4) {
      const int row = first_row + Tile::row(i), column = first_column + Tile::column(j);
      if (row >= p.m || column >= pitch) continue;
      auto* at = reinterpret_cast<float4*>(to + std::int64_t{row} * pitch + column);
      const float4 before = p.accumulate ? *at : make_float4(0, 0, 0, 0);
      *at = make_float4(before.x + accumulators[i][j], before.y + accumulators[i][j + 1],
                        before.z + accumulators[i][j + 2], before.w + accumulators[i][j + 3]);
    }
}

template <bool k_contiguous>
void batched_gemm(const BatchedGemm& p, const float* a, const float* b, float* c) {
  using Tiles =
      TileSizes<FmaTile<128, 128, 8>, FmaTile<64, 128, 8>, FmaTile<64, 64, 4>, FmaTile<32, 64, 4>>;
  const int batch = p.batch * p.splits;
  with_tile(Tiles{}, LoadCost::vectorized, p.m, p.n, batch, [&](auto tile) {
    const dim3 blocks(batch * blocks_for(p.n, tile.n), blocks_for(p.m, tile.m));
    launch(batched_gemm_kernel<decltype(tile), k_contiguous>, {blocks, tile.threads}, p, a, b, c);
  });
}

}  // namespace stepladder::convolution

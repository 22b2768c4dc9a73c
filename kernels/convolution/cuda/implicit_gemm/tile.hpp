// A GEMM in which each block computes an m x n tile of C, and each thread 8 x 8 or 8 x 4 of its
// elements in registers. A and B need not be matrices in memory: two loaders say how to read them.
//
//                       B [k, n]                  accumulators of a thread, 8 x 8:
//                       ┌───────────────┐         rows 4y … and m/2 + 4y …,
//                       └───────────────┘         columns 4x … and n/2 + 4x …:
//     A [k, m]          ┌───────────────┐         four 4 x 4 blocks, adjacent to
//          ┌─┐          │    m x n      │         those of the neighbours, so a
//          │ │          │               │         warp reads shared memory
//          └─┘          └───────────────┘         without bank conflicts
//
// The next K step is loaded into registers while the current one is multiplied, and is then stored
// to the other of two buffers in shared memory: one barrier per step.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "kernels/common/cuda/plan.hpp"

namespace stepladder::convolution {

// On the CUDA cores, in fp32.
template <int m_, int n_, int thread_n_>
struct FmaTile {
  static constexpr int m = m_, n = n_, k = 8;
  static constexpr int thread_m = 8, thread_n = thread_n_;  // accumulators of a thread
  static constexpr int threads_n = n / thread_n, threads = m / thread_m * threads_n;
  static constexpr int vector_n = 4;  // adjacent accumulators of a thread along a row
  static constexpr int vector_m = 4;  // along a column
  static constexpr int speed = 1;     // products in the time of an FMA

  // The tile row and column of a thread's accumulator (i, j).
  __device__ static int row(int i) {
    return i / 4 * (m / 2) + static_cast<int>(threadIdx.x) / threads_n * 4 + i % 4;
  }
  __device__ static int column(int j) {
    return j / 4 * (n / 2) + static_cast<int>(threadIdx.x) % threads_n * 4 + j % 4;
  }

  using Accumulators = float[thread_m][thread_n];
  using SharedA = float[k][m + 4];  // padded by 4: its columns are written without bank conflicts
  using SharedB = float[k][n + 4];

  __device__ static float convert(float value) { return value; }  // to the operands' format

  __device__ static void accumulate(const SharedA& a, const SharedB& b,
                                    Accumulators& accumulators) {
#pragma unroll
    for (int l = 0; l < k; ++l) {
      float rows[thread_m], columns[thread_n];
#pragma unroll
      for (int i = 0; i < thread_m; i += 4) {
        const float4 four = *reinterpret_cast<const float4*>(&a[l][row(i)]);
        rows[i] = four.x, rows[i + 1] = four.y, rows[i + 2] = four.z, rows[i + 3] = four.w;
      }
#pragma unroll
      for (int j = 0; j < thread_n; j += 4) {
        const float4 four = *reinterpret_cast<const float4*>(&b[l][column(j)]);
        columns[j] = four.x, columns[j + 1] = four.y, columns[j + 2] = four.z,
        columns[j + 3] = four.w;
      }
#pragma unroll
      for (int i = 0; i < thread_m; ++i)
#pragma unroll
        for (int j = 0; j < thread_n; ++j) accumulators[i][j] += rows[i] * columns[j];
    }
  }
};

template <class... Tiles>
struct TileSizes {};
using FmaTiles = TileSizes<FmaTile<128, 128, 8>, FmaTile<64, 128, 8>, FmaTile<64, 64, 4>,
                           FmaTile<32, 128, 4>, FmaTile<32, 64, 4>>;

// Throws Unsupported if `batch` GEMMs with m rows need too many blocks along y and z.
inline void require_gemm_grid(std::int64_t m, std::int64_t batch) {
  constexpr int least_rows = 32;  // of a tile
  require_grid({1, blocks_for(m, least_rows), grid_x(batch)});
}

// Stores a K step to shared memory ([k, m] or [k, n]) that consecutive threads loaded along K.
template <class Tile, class Shared, int count>
__device__ void store_k_contiguous(const float (&values)[count], Shared& shared) {
#pragma unroll
  for (int j = 0; j < count; ++j)
    shared[threadIdx.x % Tile::k][threadIdx.x / Tile::k + j * (Tile::threads / Tile::k)] =
        Tile::convert(values[j]);
}

// The same for a step that consecutive threads loaded along M or N, whose tile size is `extent`.
template <class Tile, int extent, class Shared, int count>
__device__ void store_mn_contiguous(const float (&values)[count], Shared& shared) {
#pragma unroll
  for (int j = 0; j < count; ++j)
    shared[threadIdx.x / extent + j * (Tile::threads / extent)][threadIdx.x % extent] =
        Tile::convert(values[j]);
}

// accumulators += A · B over the K steps [first, last), each Tile::k long. A loader's load(step)
// reads this thread's elements of a step into registers, store(shared) writes them to shared
// memory.
template <class Tile, class LoaderA, class LoaderB>
__device__ void gemm_main_loop(LoaderA& a, LoaderB& b, int first, int last,
                               typename Tile::Accumulators& accumulators) {
  __shared__ __align__(16) typename Tile::SharedA shared_a[2];
  __shared__ __align__(16) typename Tile::SharedB shared_b[2];
  if (first < last) {
    a.load(first);
    b.load(first);
  }
  for (int step = first; step < last; ++step) {
    a.store(shared_a[step % 2]);
    b.store(shared_b[step % 2]);
    __syncthreads();
    if (step + 1 < last) {
      a.load(step + 1);
      b.load(step + 1);
    }
    Tile::accumulate(shared_a[step % 2], shared_b[step % 2], accumulators);
  }
}

// Instructions to load one element of an operand, approximately.
enum class LoadCost { gathered = 10, vectorized = 1 };

// Calls function(tile) with the tile of least estimated time for `batch` GEMMs of m x n. A large
// tile loads less per product; a small tile leaves fewer multiprocessors idle in the last wave of
// blocks.
template <class... Tiles, class Function>
void with_tile(TileSizes<Tiles...>, LoadCost cost, std::int64_t m, std::int64_t n,
               std::int64_t batch, const Function& function) {
  const auto time = [&](auto tile) {
    const std::int64_t blocks = std::int64_t{blocks_for(m, tile.m)} * blocks_for(n, tile.n) * batch;
    return blocks_for(blocks, cuda_multiprocessors()) *
           (tile.m * tile.n / tile.speed + static_cast<int>(cost) * (tile.m + tile.n));
  };
  const std::int64_t times[] = {time(Tiles{})...};
  const auto best = std::min_element(std::begin(times), std::end(times)) - std::begin(times);
  int number = 0;
  ((number++ == best ? function(Tiles{}) : void()), ...);
}

}  // namespace stepladder::convolution

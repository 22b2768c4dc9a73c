// A matrix product of which each block makes a tile, with 8 x 8 or 8 x 4 sums in the registers of each
// thread. The factors need not be matrices in memory: a Left and a Right say how to fetch them.
//
//                        right [depth, n]                 a thread's sums, 8 x 8:
//                       ┌───────────────┐                 rows 4y … and m/2 + 4y …,
//                       └───────────────┘                 columns 4x … and n/2 + 4x …:
//     left [depth, m]   ┌───────────────┐                 four vectors of four, next to
//          ┌─┐          │    m x n      │                 those of the neighbours, so
//          │ │          │               │                 that a warp reads shared
//          └─┘          └───────────────┘                 memory without conflicts
//
// While the products of one step run, the next step's elements are on their way to registers; they go
// to the other of two buffers, so that one barrier per step is enough.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "kernels/common/cuda/plan.hpp"

namespace stepladder::convolution {

// On the ordinary multipliers, in fp32.
template <int m_, int n_, int sums_n_>
struct FmaTile {
  static constexpr int m = m_, n = n_, depth = 8;
  static constexpr int sums_m = 8, sums_n = sums_n_;
  static constexpr int threads_n = n / sums_n, threads = m / sums_m * threads_n;
  static constexpr int side_by_side = 4;       // sums of a thread in neighbouring columns
  static constexpr int one_below_another = 4;  // in neighbouring rows
  static constexpr int speed = 1;              // products in the time of an FMA

  // Where a thread's sums lie in the tile.
  __device__ static int row(int i) {
    return i / 4 * (m / 2) + static_cast<int>(threadIdx.x) / threads_n * 4 + i % 4;
  }
  __device__ static int column(int j) {
    return j / 4 * (n / 2) + static_cast<int>(threadIdx.x) % threads_n * 4 + j % 4;
  }

  using Sums = float[sums_m][sums_n];
  using LeftStep = float[depth][m + 4];  // 4 more: columns of it are written without conflicts
  using RightStep = float[depth][n + 4];

  __device__ static float stored(float value) { return value; }  // as shared memory holds it

  __device__ static void accumulate(const LeftStep& a, const RightStep& b, Sums& sums) {
#pragma unroll
    for (int k = 0; k < depth; ++k) {
      float rows[sums_m], columns[sums_n];
#pragma unroll
      for (int i = 0; i < sums_m; i += 4) {
        const float4 four = *reinterpret_cast<const float4*>(&a[k][row(i)]);
        rows[i] = four.x, rows[i + 1] = four.y, rows[i + 2] = four.z, rows[i + 3] = four.w;
      }
#pragma unroll
      for (int j = 0; j < sums_n; j += 4) {
        const float4 four = *reinterpret_cast<const float4*>(&b[k][column(j)]);
        columns[j] = four.x, columns[j + 1] = four.y, columns[j + 2] = four.z,
        columns[j + 3] = four.w;
      }
#pragma unroll
      for (int i = 0; i < sums_m; ++i)
#pragma unroll
        for (int j = 0; j < sums_n; ++j) sums[i][j] += rows[i] * columns[j];
    }
  }
};

template <class... Tiles>
struct TileSizes {};
using FmaTiles = TileSizes<FmaTile<128, 128, 8>, FmaTile<64, 128, 8>, FmaTile<64, 64, 4>,
                           FmaTile<32, 128, 4>, FmaTile<32, 64, 4>>;

// Writes what a Left or a Right fetched with lanes next to each other along the depth.
template <class Tile, class Step, int count>
__device__ void put_along_depth(const float (&values)[count], Step& shared) {
#pragma unroll
  for (int j = 0; j < count; ++j)
    shared[threadIdx.x % Tile::depth]
          [threadIdx.x / Tile::depth + j * (Tile::threads / Tile::depth)] = Tile::stored(values[j]);
}

// The same for lanes next to each other across the depth, of which a row has `extent`.
template <class Tile, int extent, class Step, int count>
__device__ void put_across_depth(const float (&values)[count], Step& shared) {
#pragma unroll
  for (int j = 0; j < count; ++j)
    shared[threadIdx.x / extent + j * (Tile::threads / extent)][threadIdx.x % extent] =
        Tile::stored(values[j]);
}

// sums += Left · Right over the steps [first, last), each of Tile::depth terms. Left::fetch(step) loads
// this thread's elements of a step, Left::put writes them to shared memory; Right likewise.
template <class Tile, class Left, class Right>
__device__ void sum_products(Left& left, Right& right, int first, int last,
                             typename Tile::Sums& sums) {
  __shared__ __align__(16) typename Tile::LeftStep lefts[2];
  __shared__ __align__(16) typename Tile::RightStep rights[2];
  if (first < last) {
    left.fetch(first);
    right.fetch(first);
  }
  for (int step = first; step < last; ++step) {
    auto& a = lefts[step % 2];
    auto& b = rights[step % 2];
    left.put(a);
    right.put(b);
    __syncthreads();
    if (step + 1 < last) {
      left.fetch(step + 1);
      right.fetch(step + 1);
    }
    Tile::accumulate(a, b, sums);
  }
}

// Instructions to fetch an element of a factor, about.
enum class Fetch { gathered = 10, vectors = 1 };

// Calls function(tile) with the tile that should take least time for a product [rows, columns] in each
// of `slices`: a large one fetches less, a small one leaves less of the last round of blocks empty.
template <class... Tiles, class Function>
void with_tile(TileSizes<Tiles...>, Fetch fetch, std::int64_t rows, std::int64_t columns,
               std::int64_t slices, const Function& function) {
  const auto time = [&](auto tile) {
    const std::int64_t blocks =
        std::int64_t{blocks_for(rows, tile.m)} * blocks_for(columns, tile.n) * slices;
    return blocks_for(blocks, cuda_multiprocessors()) *
           (tile.m * tile.n / tile.speed + static_cast<int>(fetch) * (tile.m + tile.n));
  };
  const std::int64_t times[] = {time(Tiles{})...};
  const auto best = std::min_element(std::begin(times), std::end(times)) - std::begin(times);
  int number = 0;
  ((number++ == best ? function(Tiles{}) : void()), ...);
}

}  // namespace stepladder::convolution

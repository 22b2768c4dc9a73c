// Many products of matrices of one shape: result = left · right in each of `slices`. A slice of left is
// [depth, rows] or, along the depth, [rows, depth]; likewise of right. Rows of all matrices are padded to
// whole vectors of four, and what the padding of a sum holds is zeros. Only .cu files include this.
#pragma once

#include "kernels/common/host_device.hpp"
#include "kernels/convolution/cuda/implicit_gemm/tile.hpp"

namespace stepladder::convolution {

struct PositionProducts {
  int rows, columns, depth, slices;
  int parts;  // of the sum over the depth, each with results of its own
  bool add;   // to what the results hold
};

STEPLADDER_HOST_DEVICE inline int padded(int count) { return (count + 3) / 4 * 4; }

// The part of a factor that a block reads: `extent` rows of the result, or columns, from `first` on. A
// thread fetches one vector of four, and others so many rows further on.
template <class Tile, int extent, bool along_depth>
struct Strip {
  static constexpr int across = (along_depth ? Tile::depth : extent) / 4;  // vectors of a row
  static constexpr int further = Tile::threads / across;
  static constexpr int count = extent * Tile::depth / 4 / Tile::threads;
  static_assert(Tile::threads % across == 0 && count * Tile::threads * 4 == extent * Tile::depth);
  const float* slice;
  int first, size, depth;  // along the result's side, and of the sum
  float4 values[count];

  __device__ static int row() { return static_cast<int>(threadIdx.x) / across; }
  __device__ static int column() { return static_cast<int>(threadIdx.x) % across * 4; }

  __device__ void fetch(int step) {
    const int start = step * Tile::depth;
    const int rows = along_depth ? size : depth, pitch = padded(along_depth ? depth : size);
    const int at_row = row() + (along_depth ? first : start);
    const int at_column = column() + (along_depth ? start : first);
    const float* from = slice + std::int64_t{at_row} * pitch + at_column;
#pragma unroll
    for (int j = 0; j < count; ++j) {
      values[j] = make_float4(0, 0, 0, 0);
      if (at_row + j * further < rows && at_column < pitch)
        values[j] = *reinterpret_cast<const float4*>(from + std::int64_t{j} * further * pitch);
    }
  }
  template <class Step>
  __device__ void put(Step& shared) const {
#pragma unroll
    for (int j = 0; j < count; ++j) {
      if constexpr (along_depth) {
        const int k = column(), x = row() + j * further;
        shared[k][x] = values[j].x, shared[k + 1][x] = values[j].y;
        shared[k + 2][x] = values[j].z, shared[k + 3][x] = values[j].w;
      } else {
        *reinterpret_cast<float4*>(&shared[row() + j * further][column()]) = values[j];
      }
    }
  }
};

// Blocks: (slice, part, columns), rows. result: [parts, slices, rows, columns]
template <class Tile, bool along_depth>
__global__ void __launch_bounds__(Tile::threads)
    multiply_positions_kernel(PositionProducts p, const float* left, const float* right,
                              float* result) {
  const int column_blocks = (p.columns + Tile::n - 1) / Tile::n;
  const int first_column = static_cast<int>(blockIdx.x) % column_blocks * Tile::n;
  const int part = static_cast<int>(blockIdx.x) / column_blocks % p.parts;
  const int slice = static_cast<int>(blockIdx.x) / column_blocks / p.parts;
  const int first_row = static_cast<int>(blockIdx.y) * Tile::m;
  const std::int64_t steps = (p.depth + Tile::depth - 1) / Tile::depth;
  const int first = static_cast<int>(steps * part / p.parts);
  const int last = static_cast<int>(steps * (part + 1) / p.parts);
  const auto slice_of = [&](const float* factor, int size) {
    return factor + std::int64_t{slice} * (along_depth ? size : p.depth) *
                        padded(along_depth ? p.depth : size);
  };

  typename Tile::Sums sums = {};
  Strip<Tile, Tile::m, along_depth> lefts{slice_of(left, p.rows), first_row, p.rows, p.depth, {}};
  Strip<Tile, Tile::n, along_depth> rights{
      slice_of(right, p.columns), first_column, p.columns, p.depth, {}};
  sum_products<Tile>(lefts, rights, first, last, sums);

  const int pitch = padded(p.columns);
  float* to = result + (std::int64_t{part} * p.slices + slice) * p.rows * pitch;
#pragma unroll
  for (int i = 0; i < Tile::sums_m; ++i)
#pragma unroll
    for (int j = 0; j < Tile::sums_n; j += 4) {
      const int row = first_row + Tile::row(i), column = first_column + Tile::column(j);
      if (row >= p.rows || column >= pitch) continue;
      auto* at = reinterpret_cast<float4*>(to + std::int64_t{row} * pitch + column);
      const float4 before = p.add ? *at : make_float4(0, 0, 0, 0);
      *at = make_float4(before.x + sums[i][j], before.y + sums[i][j + 1], before.z + sums[i][j + 2],
                        before.w + sums[i][j + 3]);
    }
}

template <bool along_depth>
void multiply_positions(const PositionProducts& p, const float* left, const float* right,
                        float* result) {
  using Tiles =
      TileSizes<FmaTile<128, 128, 8>, FmaTile<64, 128, 8>, FmaTile<64, 64, 4>, FmaTile<32, 64, 4>>;
  const int slices = p.slices * p.parts;
  with_tile(Tiles{}, Fetch::vectors, p.rows, p.columns, slices, [&](auto tile) {
    const dim3 blocks(slices * blocks_for(p.columns, tile.n), blocks_for(p.rows, tile.m));
    launch(multiply_positions_kernel<decltype(tile), along_depth>, {blocks, tile.threads}, p, left,
           right, result);
  });
}

}  // namespace stepladder::convolution

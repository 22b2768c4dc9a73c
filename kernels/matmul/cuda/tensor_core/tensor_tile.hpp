// The tile of C that a block computes on the tensor cores:
//
//     block      side x side           a grid of warps
//     warp       rows x columns        products of 16 x 8 x 8
//
// An operand has the same layout in shared memory as in global memory, so that 16-byte copies work
// for both layouts. Rows are padded so that the 32 elements of a fragment (8 x by 4 l) are in 32
// banks:
//
//     K-contiguous            [x, 16 + 4]     bank of (x, l):  20 x + l, modulo 32
//     M- or N-contiguous      [l, side + 8]                     8 l + x
//
// Arithmetic defines the fragments and accumulators (tf32.hpp, tf32x3.hpp). Only .cu files include
// this; their plans call require_compute_capability(80).
#pragma once

#include "kernels/common/cuda/shared_memory.hpp"
#include "kernels/matmul/cuda/operand_copy.hpp"
#include "kernels/matmul/cuda/pipeline.hpp"
#include "kernels/matmul/cuda/tile_grid.hpp"

namespace stepladder::matmul {

template <class Arithmetic, int side, int warp_rows, int warp_columns>
class TensorTile {
 public:
  static constexpr int tile = side;  // rows and columns of C, a multiple of 32
  static constexpr int tile_k = 16;  // K of a stage
  static constexpr int threads = tile / warp_rows * (tile / warp_columns) * 32;
  static constexpr int stages = 512 / tile;  // the same bytes in flight for every tile size
  static constexpr int operand_floats = tile * (tile_k + 4);  // the larger of the two layouts
  static constexpr std::size_t shared_bytes = stages * 2 * operand_floats * sizeof(float);  // 80 KB

  // Adds the products of `steps` steps of tile_k, from step first_step on, to the accumulators of
  // the tile at `origin`.
  template <bool a_k_contiguous, bool b_k_contiguous, bool vectors>
  __device__ void multiply(const Operand& a, const Operand& b, const TileOrigin& origin,
                           int first_step, int steps) {
    float* const tiles = dynamic_shared<float>();  // [stages, 2, operand_floats]
    const auto a_tile = [&](int stage) { return tiles + 2 * stage * operand_floats; };
    const auto b_tile = [&](int stage) { return a_tile(stage) + operand_floats; };
    const std::int64_t first = std::int64_t{first_step} * tile_k;
    OperandCopy<Layout<a_k_contiguous, vectors>> copy_a(a, origin.row, first);
    OperandCopy<Layout<b_k_contiguous, vectors>> copy_b(b, origin.column, first);
    pipeline<stages>(
        steps,
        [&](int stage) {
          copy_a.next(a_tile(stage));
          copy_b.next(b_tile(stage));
        },
        [&](int stage) {
#pragma unroll
          for (int l = 0; l < tile_k; l += 8)
            add_products<a_k_contiguous, b_k_contiguous>(a_tile(stage), b_tile(stage), l);
        });
  }

  // Calls store(i, j, values) for every two adjacent elements of a row, relative to the tile's
  // origin.
  template <class Store>
  __device__ void for_each_pair(const Store& store) const {
#pragma unroll
    for (int i = 0; i < fragments_down; ++i)
#pragma unroll
      for (int j = 0; j < fragments_across; ++j)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const float pair[2] = {accumulators_[i][j].value(2 * half),
                                 accumulators_[i][j].value(2 * half + 1)};
          store(first_row() + 16 * i + 8 * half + group(), first_column() + 8 * j + 2 * member(),
                pair);
        }
  }

 private:
  static constexpr int fragments_down = warp_rows / 16, fragments_across = warp_columns / 8;

  template <bool is_k_contiguous, bool vectors>
  struct Layout {
    static constexpr bool k_contiguous = is_k_contiguous;
    static constexpr int tile_k = TensorTile::tile_k, width = vectors ? 4 : 1;
    static constexpr int count = tile_k * tile / threads / width;
    // The threads of a block copy whole rows of a tile at a time.
    static constexpr int row = k_contiguous ? tile_k : tile, rows = threads * width / row;
    static constexpr int repeats = k_contiguous ? 1 : count, repeat_step = rows;
    static __device__ int x(int i) {
      return k_contiguous ? thread() * width / row + i * rows : thread() * width % row;
    }
    static __device__ int l(int i) {
      return k_contiguous ? thread() * width % row : thread() * width / row + i * rows;
    }
    static __device__ int at(int x, int l) {
      return k_contiguous ? x * (tile_k + 4) + l : l * (tile + 8) + x;
    }
  };

  template <bool a_k_contiguous, bool b_k_contiguous>
  __device__ void add_products(const float* a_tile, const float* b_tile, int l) {
    using A = Layout<a_k_contiguous, true>;
    using B = Layout<b_k_contiguous, true>;
    typename Arithmetic::template Fragment<4> a[fragments_down];
    typename Arithmetic::template Fragment<2> b[fragments_across];
#pragma unroll
    for (int i = 0; i < fragments_down; ++i)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        a[i].set(
            e, a_tile[A::at(first_row() + 16 * i + e % 2 * 8 + group(), l + e / 2 * 4 + member())]);
#pragma unroll
    for (int j = 0; j < fragments_across; ++j)
#pragma unroll
      for (int e = 0; e < 2; ++e)
        b[j].set(e, b_tile[B::at(first_column() + 8 * j + group(), l + e * 4 + member())]);
#pragma unroll
    for (int i = 0; i < fragments_down; ++i)
#pragma unroll
      for (int j = 0; j < fragments_across; ++j) accumulators_[i][j].add(a[i], b[j]);
  }

  static __device__ int thread() { return static_cast<int>(threadIdx.x); }
  static __device__ int warp() { return thread() / 32; }
  static __device__ int group() { return thread() % 32 / 4; }
  static __device__ int member() { return thread() % 4; }
  static constexpr int warps_down = tile / warp_rows;
  static __device__ int first_row() { return warp() % warps_down * warp_rows; }
  static __device__ int first_column() { return warp() / warps_down * warp_columns; }

  typename Arithmetic::Accumulator accumulators_[fragments_down][fragments_across];
};

}  // namespace stepladder::matmul

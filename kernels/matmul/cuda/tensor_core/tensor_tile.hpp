// The tile of C that a block computes on the tensor cores:
//
//     block      side x side           warps side by side and below each other
//     warp       rows x columns        products of 16 x 8 x 8
//
// A factor lies in shared memory as it lies in global memory, so that 16-byte copies bring either
// kind. The rows are as much too long as sends the 32 elements of a fragment (8 x by 4 l) to 32
// banks:
//
//     along_depth   [x, 16 + 4]     bank of (x, l):  20 x + l, modulo 32
//     otherwise     [l, side + 8]                     8 l + x
//
// Arithmetic says what becomes of the factors' elements and how sums are kept: see
// cuda_tf32.hpp. Only .cu files include this; their plans call
// require_compute_capability(80).
#pragma once

#include "kernels/common/cuda/shared_memory.hpp"
#include "kernels/matmul/cuda/tile_grid.hpp"
#include "kernels/matmul/cuda/operand_copy.hpp"
#include "kernels/matmul/cuda/pipeline.hpp"

namespace stepladder::matmul {

template <class Arithmetic, int side, int warp_rows, int warp_columns>
class TensorTile {
 public:
  static constexpr int tile = side;  // rows and columns of C, a multiple of 32
  static constexpr int depth = 16;   // of one stage
  static constexpr int threads = tile / warp_rows * (tile / warp_columns) * 32;
  static constexpr int stages = 512 / tile;                 // as much is in flight for any tile,
  static constexpr int factor_floats = tile * (depth + 4);  // of the longer of the two
  static constexpr std::size_t shared_bytes = stages * 2 * factor_floats * sizeof(float);  // 80 KB

  // Adds to the sums what the tile at `corner` gets of `steps` times `depth` products, from
  // the first_step-th on.
  template <bool a_along_depth, bool b_along_depth, bool vectors>
  __device__ void multiply(const Factor& a, const Factor& b, const Corner& corner, int first_step,
                           int steps) {
    float* const tiles = dynamic_shared<float>();  // [stages, 2, factor_floats]
    const auto a_tile = [&](int stage) { return tiles + 2 * stage * factor_floats; };
    const auto b_tile = [&](int stage) { return a_tile(stage) + factor_floats; };
    const std::int64_t first = std::int64_t{first_step} * depth;
    FactorCopy<Layout<a_along_depth, vectors>> copy_a(a, corner.row, first);
    FactorCopy<Layout<b_along_depth, vectors>> copy_b(b, corner.column, first);
    pipeline<stages>(
        steps,
        [&](int stage) {
          copy_a.next(a_tile(stage));
          copy_b.next(b_tile(stage));
        },
        [&](int stage) {
#pragma unroll
          for (int l = 0; l < depth; l += 8)
            add_products<a_along_depth, b_along_depth>(a_tile(stage), b_tile(stage), l);
        });
  }

  // Calls store(i, j, sums) for every two neighbours of a row; i and j count from the tile's corner.
  template <class Store>
  __device__ void for_each_two(const Store& store) const {
#pragma unroll
    for (int i = 0; i < fragments_down; ++i)
#pragma unroll
      for (int j = 0; j < fragments_across; ++j)
#pragma unroll
        for (int below = 0; below < 2; ++below) {
          const float two[2] = {sums_[i][j].value(2 * below), sums_[i][j].value(2 * below + 1)};
          store(first_row() + 16 * i + 8 * below + group(), first_column() + 8 * j + 2 * member(),
                two);
        }
  }

 private:
  static constexpr int fragments_down = warp_rows / 16, fragments_across = warp_columns / 8;

  template <bool is_along_depth, bool vectors>
  struct Layout {
    static constexpr bool along_depth = is_along_depth;
    static constexpr int depth = TensorTile::depth, width = vectors ? 4 : 1;
    static constexpr int count = depth * tile / threads / width;
    // The threads of a block take whole rows of a tile at a time.
    static constexpr int row = along_depth ? depth : tile, rows = threads * width / row;
    static constexpr int repeats = along_depth ? 1 : count, repeat_step = rows;
    static __device__ int x(int i) {
      return along_depth ? thread() * width / row + i * rows : thread() * width % row;
    }
    static __device__ int l(int i) {
      return along_depth ? thread() * width % row : thread() * width / row + i * rows;
    }
    static __device__ int at(int x, int l) {
      return along_depth ? x * (depth + 4) + l : l * (tile + 8) + x;
    }
  };

  template <bool a_along_depth, bool b_along_depth>
  __device__ void add_products(const float* a_tile, const float* b_tile, int l) {
    using A = Layout<a_along_depth, true>;
    using B = Layout<b_along_depth, true>;
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
      for (int j = 0; j < fragments_across; ++j) sums_[i][j].add(a[i], b[j]);
  }

  static __device__ int thread() { return static_cast<int>(threadIdx.x); }
  static __device__ int warp() { return thread() / 32; }
  static __device__ int group() { return thread() % 32 / 4; }
  static __device__ int member() { return thread() % 4; }
  static constexpr int warps_down = tile / warp_rows;
  static __device__ int first_row() { return warp() % warps_down * warp_rows; }
  static __device__ int first_column() { return warp() / warps_down * warp_columns; }

  typename Arithmetic::Sums sums_[fragments_down][fragments_across];
};

}  // namespace stepladder::matmul

// The tile of C that a block computes on the tensor cores:
//
//     block   128 x 128            warps side by side and below each other
//     warp     64 x warp_columns   products of 16 x 8 x 8
//
// A factor lies in shared memory as it lies in global memory, so that 16-byte copies bring either
// kind. The rows are as much too long as sends the 32 elements of a fragment (8 x by 4 l) to 32
// banks:
//
//     along_depth   [x, 16 + 4]    bank of (x, l):  20 x + l, modulo 32
//     otherwise     [l, 128 + 8]                     8 l + x
//
// Arithmetic says what becomes of the factors' elements and how sums are kept: see
// tf32_tensor_core.cu. Only .cu files include this; their plans call
// require_compute_capability(80).
#pragma once

#include "kernels/common/cuda_mma.hpp"
#include "kernels/common/cuda_shared.hpp"
#include "kernels/matmul/cuda_blocks.hpp"
#include "kernels/matmul/cuda_factor_copy.hpp"
#include "kernels/matmul/cuda_pipeline.hpp"
#include "kernels/matmul/cuda_store.hpp"

namespace stepladder::matmul {

template <class Arithmetic, int warp_columns>
class TensorTile {
 public:
  static constexpr int tile = 128;  // rows and columns of C
  static constexpr int depth = 16;  // of one stage
  static constexpr int threads = tile / 64 * (tile / warp_columns) * 32;
  static constexpr int stages = 4;
  static constexpr int factor_floats = tile * (depth + 4);  // the longer of the two
  static constexpr std::size_t shared_bytes = stages * 2 * factor_floats * sizeof(float);

  // What op(A) op(B) is at the tile.
  template <bool a_along_depth, bool b_along_depth, bool vectors>
  __device__ void multiply(const Factor& a, const Factor& b, const Corner& corner) {
    float* const tiles = dynamic_shared<float>();  // [stages, 2, factor_floats]
    const auto a_tile = [&](int stage) { return tiles + 2 * stage * factor_floats; };
    const auto b_tile = [&](int stage) { return a_tile(stage) + factor_floats; };
    FactorCopy<Layout<a_along_depth, vectors>> copy_a(a, corner.row, 0);
    FactorCopy<Layout<b_along_depth, vectors>> copy_b(b, corner.column, 0);
    pipeline<stages>(
        static_cast<int>((a.depth + depth - 1) / depth),
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

  template <bool vectors>
  __device__ void store_all(const Problem& p, const Operands& o, const Corner& corner) const {
#pragma unroll
    for (int i = 0; i < fragments_down; ++i)
#pragma unroll
      for (int j = 0; j < fragments_across; ++j)
#pragma unroll
        for (int below = 0; below < 2; ++below) {
          const float two[2] = {sums_[i][j].value(2 * below), sums_[i][j].value(2 * below + 1)};
          store_neighbours<2, vectors>(p, o,
                                       corner.row + first_row() + 16 * i + 8 * below + group(),
                                       corner.column + first_column() + 8 * j + 2 * member(), two);
        }
  }

 private:
  static constexpr int fragments_down = 64 / 16, fragments_across = warp_columns / 8;

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
  static __device__ int first_row() { return warp() % 2 * 64; }
  static __device__ int first_column() { return warp() / 2 * warp_columns; }

  typename Arithmetic::Sums sums_[fragments_down][fragments_across];
};

}  // namespace stepladder::matmul

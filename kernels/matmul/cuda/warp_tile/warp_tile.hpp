// The tile of C that a block of 256 threads computes in fp32, in three levels:
//
//     block   128 x 128   4 x 2 warps
//     warp     32 x  64   4 x 8 threads
//     thread    8 x   8   2 x 2 squares of 4 x 4, half a warp tile apart
//
// Both operands are in shared memory as [l, x], l along K. For each step of K a thread reads two
// float4 of each. Only .cu files include this; their plans call require_compute_capability(80).
#pragma once

#include <type_traits>

#include "kernels/matmul/cuda/operand_copy.hpp"
#include "kernels/matmul/cuda/pipeline.hpp"
#include "kernels/matmul/cuda/store.hpp"
#include "kernels/matmul/cuda/tile_grid.hpp"

namespace stepladder::matmul {

// Whether the tile can use vectors. K-contiguous operands are transposed float by float and need
// none.
inline bool tile_allows_vectors(const Problem& p, const Operands& o) {
  const Operand a = operand_a(p, o), b = operand_b(p, o);
  return (a.k_contiguous || allows_vectors(a)) && (b.k_contiguous || allows_vectors(b)) &&
         allows_vectors(o.c, p.n);
}

class WarpTile {
 public:
  static constexpr int threads = 256;
  static constexpr int tile = 128;   // rows and columns of C
  static constexpr int tile_k = 16;  // K of a stage

  // Adds the products of `steps` steps of tile_k, from step first_step on, to the accumulators of
  // the tile at `origin`.
  template <bool a_k_contiguous, bool b_k_contiguous, bool vectors>
  __device__ void multiply(const Operand& a, const Operand& b, const TileOrigin& origin,
                           int first_step, int steps) {
    __shared__ __align__(16) float a_tile[2][tile_k * pitch],
        b_tile[2][tile_k * pitch];  // [stage, l, x]
    const std::int64_t first = std::int64_t{first_step} * tile_k;
    Copy<a_k_contiguous, vectors> copy_a(a, origin.row, first);
    Copy<b_k_contiguous, vectors> copy_b(b, origin.column, first);
    pipeline<2>(
        steps,
        [&](int stage) {
          copy_a.next(a_tile[stage]);
          copy_b.next(b_tile[stage]);
        },
        [&](int stage) {
#pragma unroll
          for (int l = 0; l < tile_k; ++l)
            add_products(&a_tile[stage][l * pitch], &b_tile[stage][l * pitch]);
        });
  }

  // Calls store(i, j, values) for every four adjacent elements of a row, relative to the tile's
  // origin.
  template <class Store>
  __device__ void for_each_four(const Store& store) const {
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
      for (int h = 0; h < 2; ++h)
        store(first_row() + i / 4 * 16 + i % 4, first_column() + h * 32, &accumulators_[i][4 * h]);
  }

 private:
  // Four floats of padding keep vectors aligned and avoid bank conflicts: 8 threads along l and 4
  // along x store to 32 banks.
  static constexpr int pitch = tile + 4;

  static __device__ int thread() { return static_cast<int>(threadIdx.x); }

  // Transposed float by float: 8 along l and 32 along x at a time, then the next 8 along l.
  struct KContiguous {
    static constexpr bool k_contiguous = true;
    static constexpr int tile_k = WarpTile::tile_k, width = 1, count = tile_k * tile / threads;
    static constexpr int repeats = 2, repeat_step = 8;
    static __device__ int x(int i) { return thread() / 8 + i / 2 * 32; }
    static __device__ int l(int i) { return thread() % 8 + i % 2 * 8; }
    static __device__ int at(int x, int l) { return l * pitch + x; }
  };
  template <bool vectors>
  struct MnContiguous {
    static constexpr bool k_contiguous = false;
    static constexpr int tile_k = WarpTile::tile_k, width = vectors ? 4 : 1;
    static constexpr int count = tile_k * tile / threads / width;
    static constexpr int repeats = count, repeat_step = threads * width / tile;
    static __device__ int x(int) { return thread() * width % tile; }
    static __device__ int l(int i) { return thread() * width / tile + i * repeat_step; }
    static __device__ int at(int x, int l) { return l * pitch + x; }
  };
  template <bool k_contiguous, bool vectors>
  using Copy = OperandCopy<std::conditional_t<k_contiguous, KContiguous, MnContiguous<vectors>>>;

  __device__ void add_products(const float* a_row, const float* b_row) {
    float a[8], b[8];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      unpack(*reinterpret_cast<const float4*>(a_row + first_row() + h * 16), a + 4 * h);
      unpack(*reinterpret_cast<const float4*>(b_row + first_column() + h * 32), b + 4 * h);
    }
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
      for (int j = 0; j < 8; ++j) accumulators_[i][j] += a[i] * b[j];
  }

  static __device__ void unpack(const float4& v, float* to) {
    to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
  }

  // Two neighbouring threads are in one column, the next two beside them, so that a half-warp reads
  // its vectors of both operands from few addresses (the order of CUTLASS's SIMT kernels).
  //
  //     0  2  4 …  14
  //     1  3  5 …  15
  //    16 18 20 …  30
  //    17 19 21 …  31
  __device__ int first_row() const {
    const int warp = thread() / 32, lane = thread() % 32;
    return warp / 2 * 32 + (lane / 16 * 2 + lane % 2) * 4;
  }
  __device__ int first_column() const {
    const int warp = thread() / 32, lane = thread() % 32;
    return warp % 2 * 64 + lane / 2 % 8 * 4;
  }

  float accumulators_[8][8] = {};
};

}  // namespace stepladder::matmul

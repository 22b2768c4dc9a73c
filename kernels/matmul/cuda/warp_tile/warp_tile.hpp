// The tile of C that a block of 256 threads computes in fp32, in three levels:
//
//     block   128 x 128   4 x 2 warps
//     warp     32 x  64   4 x 8 threads
//     thread    8 x   8   2 x 2 squares of 4 x 4, half a warp's tile apart
//
// Both factors lie in shared memory as [l, x], and for each l a thread reads two vectors of four
// from both. Only .cu files include this; their plans call require_compute_capability(80).
#pragma once

#include <type_traits>

#include "kernels/matmul/cuda/tile_grid.hpp"
#include "kernels/matmul/cuda/operand_copy.hpp"
#include "kernels/matmul/cuda/pipeline.hpp"
#include "kernels/matmul/cuda/store.hpp"

namespace stepladder::matmul {

// Whether all that the tile reads and writes in vectors is in_vectors: a factor that is turned is
// not.
inline bool tile_in_vectors(const Problem& p, const Operands& o) {
  const Factor a = factor_a(p, o), b = factor_b(p, o);
  return (a.along_depth || in_vectors(a)) && (b.along_depth || in_vectors(b)) &&
         in_vectors(o.c, p.n);
}

class WarpTile {
 public:
  static constexpr int threads = 256;
  static constexpr int tile = 128;  // rows and columns of C
  static constexpr int depth = 16;  // of one stage

  // Adds to the sums what the tile at `corner` gets of `steps` times `depth` products, from
  // the first_step-th on.
  template <bool a_along_depth, bool b_along_depth, bool vectors>
  __device__ void multiply(const Factor& a, const Factor& b, const Corner& corner, int first_step,
                           int steps) {
    __shared__ __align__(16) float a_tile[2][depth * row], b_tile[2][depth * row];  // [stage, l, x]
    const std::int64_t first = std::int64_t{first_step} * depth;
    Copy<a_along_depth, vectors> copy_a(a, corner.row, first);
    Copy<b_along_depth, vectors> copy_b(b, corner.column, first);
    pipeline<2>(
        steps,
        [&](int stage) {
          copy_a.next(a_tile[stage]);
          copy_b.next(b_tile[stage]);
        },
        [&](int stage) {
#pragma unroll
          for (int l = 0; l < depth; ++l)
            add_products(&a_tile[stage][l * row], &b_tile[stage][l * row]);
        });
  }

  // Calls store(i, j, sums) for every four neighbours of a row; i and j count from the tile's
  // corner.
  template <class Store>
  __device__ void for_each_four(const Store& store) const {
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
      for (int part = 0; part < 2; ++part)
        store(first_row() + i / 4 * 16 + i % 4, first_column() + part * 32, &sums_[i][4 * part]);
  }

 private:
  // Four floats more keep the vectors aligned and send 8 threads along l and 4 along x to 32 banks.
  static constexpr int row = tile + 4;

  static __device__ int thread() { return static_cast<int>(threadIdx.x); }

  // Turned, float by float: 8 along l and 32 along x at a time, then the next 8 along l.
  struct AlongDepth {
    static constexpr bool along_depth = true;
    static constexpr int depth = WarpTile::depth, width = 1, count = depth * tile / threads;
    static constexpr int repeats = 2, repeat_step = 8;
    static __device__ int x(int i) { return thread() / 8 + i / 2 * 32; }
    static __device__ int l(int i) { return thread() % 8 + i % 2 * 8; }
    static __device__ int at(int x, int l) { return l * row + x; }
  };
  template <bool vectors>
  struct AlongExtent {
    static constexpr bool along_depth = false;
    static constexpr int depth = WarpTile::depth, width = vectors ? 4 : 1;
    static constexpr int count = depth * tile / threads / width;
    static constexpr int repeats = count, repeat_step = threads * width / tile;
    static __device__ int x(int) { return thread() * width % tile; }
    static __device__ int l(int i) { return thread() * width / tile + i * repeat_step; }
    static __device__ int at(int x, int l) { return l * row + x; }
  };
  template <bool along_depth, bool vectors>
  using Copy = FactorCopy<std::conditional_t<along_depth, AlongDepth, AlongExtent<vectors>>>;

  __device__ void add_products(const float* a_row, const float* b_row) {
    float a[8], b[8];
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      put(*reinterpret_cast<const float4*>(a_row + first_row() + part * 16), a + 4 * part);
      put(*reinterpret_cast<const float4*>(b_row + first_column() + part * 32), b + 4 * part);
    }
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
      for (int j = 0; j < 8; ++j) sums_[i][j] += a[i] * b[j];
  }

  static __device__ void put(const float4& v, float* to) {
    to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
  }

  // Two neighbouring threads stand below each other, and the next two beside them: so both vectors
  // that a half-warp reads come from few addresses (the order of CUTLASS's SIMT kernels).
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

  float sums_[8][8] = {};
};

}  // namespace stepladder::matmul

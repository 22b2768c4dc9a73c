// A strip of a factor, tile after tile along l, copied asynchronously into shared memory by a
// block. Only .cu files include this; their plans call require_compute_capability(80) and
// require_32_bit_offsets.
#pragma once

#include "kernels/common/cuda/async_copy.hpp"
#include "kernels/matmul/cuda/operand.hpp"

namespace stepladder::matmul {

// Offsets within a tile are 32-bit numbers, which cost a GPU less: 127 rows further on is still
// within.
inline void require_32_bit_offsets(const Problem& p) {
  constexpr std::int64_t most = std::int64_t{1} << 24;
  if (p.m > most || p.n > most || p.k > most)
    throw Unsupported("a side is longer than 2^24, and offsets in a tile have 32 bits");
}

// A Layout says which floats of a tile a thread copies, and where to:
//
//     along_depth, depth       of the factor; of a tile
//     width                    floats to a copy, neighbours in global memory
//     count, repeats           copies of a thread; how many follow each other at the same x,
//     repeat_step              each so much further in l
//     x(i), l(i)               where the i-th copy begins
//     at(x, l)                 its place in the tile
//
// What does not change from tile to tile is computed once: a copy costs one addition.
template <class Layout>
class FactorCopy {
 public:
  __device__ FactorCopy(const Factor& factor, std::int64_t x, std::int64_t l)
      : step_of_l_(Layout::along_depth ? 1 : factor.extent),
        depth_left_(static_cast<int>(factor.depth - l)) {
    const int row = static_cast<int>(Layout::along_depth ? factor.depth : factor.extent);
    // Past the edge the last of the factor is copied again, into sums that are not stored.
    const std::int64_t last = factor.extent - x - (Layout::along_depth ? 1 : Layout::width);
#pragma unroll
    for (int i = 0; i < Layout::count; i += Layout::repeats) {
      const int dx = last < Layout::x(i) ? static_cast<int>(last) : Layout::x(i);
      offset_[i / Layout::repeats] =
          Layout::along_depth ? dx * row + Layout::l(i) : Layout::l(i) * row + dx;
    }
    from_ = factor.at + (Layout::along_depth ? x * factor.depth + l : l * factor.extent + x);
  }

  // Past the end of the sums zeros are written, which add nothing.
  __device__ void next(float* to) {
    constexpr int bytes = 4 * Layout::width;
#pragma unroll
    for (int i = 0; i < Layout::count; ++i) {
      const float* from = from_ + offset_[i / Layout::repeats] +
                          i % Layout::repeats * Layout::repeat_step * step_of_l_;
      copy_async<bytes>(to + Layout::at(Layout::x(i), Layout::l(i)), from,
                        Layout::l(i) < depth_left_ ? bytes : 0);
    }
    from_ += Layout::depth * step_of_l_;
    depth_left_ -= Layout::depth;
  }

 private:
  const float* from_;  // the tile's first float
  std::int64_t step_of_l_;
  int depth_left_;
  int offset_[Layout::count / Layout::repeats];
};

}  // namespace stepladder::matmul

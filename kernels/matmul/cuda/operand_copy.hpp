// Asynchronous copies of a strip of an operand into shared memory, one tile of K after another.
// Only .cu files include this; their plans call require_compute_capability(80) and
// require_32_bit_offsets.
#pragma once

#include "kernels/common/cuda/async_copy.hpp"
#include "kernels/matmul/cuda/operand.hpp"

namespace stepladder::matmul {

// Offsets within a tile have 32 bits, which are cheaper on a GPU: at most 127 rows of 2^24 floats.
inline void require_32_bit_offsets(const Problem& p) {
  constexpr std::int64_t most = std::int64_t{1} << 24;
  if (p.m > most || p.n > most || p.k > most)
    throw Unsupported("a dimension exceeds 2^24, but offsets within a tile have 32 bits");
}

// A Layout defines which floats of a tile a thread copies, and where to:
//
//     k_contiguous, tile_k     layout of the operand; K of a tile
//     width                    floats per copy, contiguous in global memory
//     count                    copies per thread
//     repeats, repeat_step     consecutive copies with the same x; the distance in l between them
//     x(i), l(i)               first element of copy i
//     at(x, l)                 offset of an element in the tile
//
// Offsets that are the same for every tile are computed once, so that a copy costs one addition.
template <class Layout>
class OperandCopy {
 public:
  __device__ OperandCopy(const Operand& operand, std::int64_t x, std::int64_t l)
      : l_stride_(Layout::k_contiguous ? 1 : operand.extent),
        k_left_(static_cast<int>(operand.k - l)) {
    const int row = static_cast<int>(Layout::k_contiguous ? operand.k : operand.extent);
    // Past the edge the last elements are copied again, for accumulators that are not stored.
    const std::int64_t last = operand.extent - x - (Layout::k_contiguous ? 1 : Layout::width);
#pragma unroll
    for (int i = 0; i < Layout::count; i += Layout::repeats) {
      const int dx = last < Layout::x(i) ? static_cast<int>(last) : Layout::x(i);
      offset_[i / Layout::repeats] =
          Layout::k_contiguous ? dx * row + Layout::l(i) : Layout::l(i) * row + dx;
    }
    from_ = operand.data + (Layout::k_contiguous ? x * operand.k + l : l * operand.extent + x);
  }

  // Starts the copies of the next tile. Past the end of K it is filled with zeros.
  __device__ void next(float* to) {
    constexpr int bytes = 4 * Layout::width;
#pragma unroll
    for (int i = 0; i < Layout::count; ++i) {
      const float* from = from_ + offset_[i / Layout::repeats] +
                          i % Layout::repeats * Layout::repeat_step * l_stride_;
      copy_async<bytes>(to + Layout::at(Layout::x(i), Layout::l(i)), from,
                        Layout::l(i) < k_left_ ? bytes : 0);
    }
    from_ += Layout::tile_k * l_stride_;
    k_left_ -= Layout::tile_k;
  }

 private:
  const float* from_;  // first float of the tile
  std::int64_t l_stride_;
  int k_left_;
  int offset_[Layout::count / Layout::repeats];
};

}  // namespace stepladder::matmul

// The accumulators of a tile of 128 rows, 64 in each of two warpgroups, and how wgmma adds to them:
// one product in TF32, or three for fp32 accuracy. wgmma's operand A comes from registers, as
// Fragments of 8 columns of K; B comes from shared memory, swizzled, [parts, columns, 32]. Only .cu
// files include this.
#pragma once

#include <cstdint>

#include "kernels/common/cuda/mma.hpp"
#include "kernels/common/cuda/shared_memory.hpp"
#include "kernels/common/cuda/swizzle.hpp"
#include "kernels/common/cuda/tma.hpp"
#include "kernels/common/cuda/wgmma.hpp"

namespace stepladder {

// A thread's accumulators of 64 rows x `columns`, in instructions as wide as possible.
template <int columns>
class WgmmaAccumulators {
 public:
  static constexpr int width = columns < 128 ? 64 : 128, products = columns / width;
  static_assert(products * width == columns);

  __device__ void add(const std::uint32_t (&a)[4], std::uint64_t b) {
#pragma unroll
    for (int i = 0; i < products; ++i)
      if constexpr (width == 128)
        wgmma_64x128x8_tf32(d_[i], a, advance_descriptor(b, 128 * i, 0));
      else
        wgmma_64x64x8_tf32(d_[i], a, advance_descriptor(b, 64 * i, 0));
  }
  __device__ void fence() {
#pragma unroll
    for (auto& d : d_) fence_accumulators(d);
  }
  __device__ float value(int i) const { return d_[i / (width / 2)][i % (width / 2)]; }

 private:
  float d_[products][width / 2] = {};
};

template <int tile_columns>
class Tf32Accumulators {
 public:
  static constexpr int columns = tile_columns;
  static constexpr int parts = 1;  // of operand B
  static constexpr TmaRounding tma_rounding = TmaRounding::to_tf32;

  struct Fragment {
    std::uint32_t bits[4];
    __device__ void set(int e, float value) { bits[e] = __float_as_uint(value); }
  };

  __device__ void add(const Fragment& a, std::uint64_t b) { accumulators_.add(a.bits, b); }
  __device__ void fence() { accumulators_.fence(); }
  __device__ float value(int i) const { return accumulators_.value(i); }

 private:
  WgmmaAccumulators<columns> accumulators_;
};

// 3xTF32: operands are big + small. A is split here, B arrives as two parts.
template <int tile_columns>
class Tf32x3Accumulators {
 public:
  static constexpr int columns = tile_columns;
  static constexpr int parts = 2;
  static constexpr TmaRounding tma_rounding = TmaRounding::none;

  struct Fragment {
    std::uint32_t big[4], small[4];
    __device__ void set(int e, float value) {
      big[e] = to_tf32(value);
      const float rest = value - __uint_as_float(big[e]);  // exact; wgmma drops the last bit
      small[e] = __float_as_uint(rest);
    }
  };

  __device__ void add(const Fragment& a, std::uint64_t b_big) {
    const std::uint64_t b_small = advance_descriptor(b_big, columns, 0);
    small_.add(a.small, b_big);
    small_.add(a.big, b_small);
    big_.add(a.big, b_big);
  }
  __device__ void fence() {
    big_.fence();
    small_.fence();
  }
  __device__ float value(int i) const { return big_.value(i) + small_.value(i); }

 private:
  WgmmaAccumulators<columns> big_, small_;
};

// Starts accumulators += A B over slices of 8 of K, as a group. `a` must not change before the
// group is complete. a_element(row, l): element of A in the tile of 128 rows; thread: 0 … 255 among
// the consumers. b: the descriptor of the slices of [parts, columns, 32], swizzled.
template <class Accumulators, int slices, class Element>
__device__ void start_products(Accumulators& accumulators,
                               typename Accumulators::Fragment (&a)[slices], int thread,
                               int first_l, std::uint64_t b, const Element& a_element) {
  const int row = thread / 32 * 16 + thread % 32 / 4, member = thread % 4;
#pragma unroll
  for (int l = 0; l < slices; ++l)
#pragma unroll
    for (int e = 0; e < 4; ++e)
      a[l].set(e, a_element(row + e % 2 * 8, first_l + 8 * l + e / 2 * 4 + member));
  wgmma_fence();
#pragma unroll
  for (int l = 0; l < slices; ++l)
    accumulators.add(a[l], advance_descriptor(b, 0, first_l + 8 * l));
}

// A stage in shared memory: b [parts, columns, 32], swizzled; a_element(row, l).
template <class Element>
struct StageOperands {
  const float* b;
  Element a_element;
};
template <class Element>
StageOperands(const float*, Element) -> StageOperands<Element>;

// accumulators += A B over `steps` steps of tile_k. The products of half a step run while the
// threads load the fragments of A for the next half. begin() waits for the operands of the next
// step and returns its StageOperands; release() is called when the products of the oldest
// unreleased step are complete.
template <int tile_k, class Accumulators, class Begin, class Release>
__device__ void add_products(Accumulators& accumulators, int thread, int steps, const Begin& begin,
                             const Release& release) {
  typename Accumulators::Fragment first[tile_k / 16], second[tile_k / 16];
  for (int step = 0; step < steps; ++step) {
    const auto [shared_b, a_element] = begin();
    const std::uint64_t b = wgmma_descriptor(shared_address(shared_b));
    start_products(accumulators, first, thread, 0, b, a_element);
    wgmma_wait<1>();
    if (step > 0) release();
    start_products(accumulators, second, thread, tile_k / 2, b, a_element);
    wgmma_wait<1>();
  }
  wgmma_wait();
  if (steps > 0) release();
}

}  // namespace stepladder

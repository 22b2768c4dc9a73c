// What a thread keeps of a tile of 128 rows while wgmma adds to it, 64 rows of it by each of two
// warpgroups, and how a product is made: once in TF32, or three times for fp32's accuracy. The first
// factor comes in Fragments of 8 columns of the depth, whose elements each thread sets; the second as
// a swizzled_part of shared memory, [parts, columns, 32]. Only .cu files include this.
#pragma once

#include <cstdint>

#include "kernels/common/cuda/mma.hpp"
#include "kernels/common/cuda/shared_memory.hpp"
#include "kernels/common/cuda/tma.hpp"
#include "kernels/common/cuda/wgmma.hpp"
#include "kernels/common/cuda/swizzle.hpp"

namespace stepladder {

// Sums of `columns` columns in the widest products that make them.
template <int columns>
class WgmmaSums {
 public:
  static constexpr int width = columns < 128 ? 64 : 128, products = columns / width;
  static_assert(products * width == columns);

  __device__ void add(const std::uint32_t (&a)[4], std::uint64_t b) {
#pragma unroll
    for (int i = 0; i < products; ++i)
      if constexpr (width == 128)
        wgmma_64x128x8_tf32(c_[i], a, swizzled_part(b, 128 * i, 0));
      else
        wgmma_64x64x8_tf32(c_[i], a, swizzled_part(b, 64 * i, 0));
  }
  __device__ void use() {
#pragma unroll
    for (auto& c : c_) use_sums(c);
  }
  __device__ float value(int i) const { return c_[i / (width / 2)][i % (width / 2)]; }

 private:
  float c_[products][width / 2] = {};
};

template <int tile_columns>
class Tf32Sums {
 public:
  static constexpr int columns = tile_columns;
  static constexpr int parts = 1;  // of the second factor
  static constexpr OnTheWay on_the_way = OnTheWay::rounded_to_tf32;

  struct Fragment {
    std::uint32_t bits[4];
    __device__ void set(int e, float value) { bits[e] = __float_as_uint(value); }
  };

  __device__ void add(const Fragment& a, std::uint64_t b) { sums_.add(a.bits, b); }
  __device__ void use() { sums_.use(); }
  __device__ float value(int i) const { return sums_.value(i); }

 private:
  WgmmaSums<columns> sums_;
};

// Each factor in two parts, big + small: the first is cut here, the second comes as both parts.
template <int tile_columns>
class Tf32x3Sums {
 public:
  static constexpr int columns = tile_columns;
  static constexpr int parts = 2;
  static constexpr OnTheWay on_the_way = OnTheWay::unchanged;

  struct Fragment {
    std::uint32_t big[4], small[4];
    __device__ void set(int e, float value) {
      big[e] = to_tf32(value);
      const float rest = value - __uint_as_float(big[e]);  // exact; wgmma drops the last bit
      small[e] = __float_as_uint(rest);
    }
  };

  __device__ void add(const Fragment& a, std::uint64_t b_big) {
    const std::uint64_t b_small = swizzled_part(b_big, columns, 0);
    small_.add(a.small, b_big);
    small_.add(a.big, b_small);
    big_.add(a.big, b_big);
  }
  __device__ void use() {
    big_.use();
    small_.use();
  }
  __device__ float value(int i) const { return big_.value(i) + small_.value(i); }

 private:
  WgmmaSums<columns> big_, small_;
};

// sums += first · second over `depth`, of which the warpgroup's products are over when this returns.
// element(row, l): the first factor, of the 64 rows of this warpgroup; thread: of all that multiply.
// second: [parts, columns, depth], swizzled.
template <int depth, class Sums, class Element>
__device__ void add_products(Sums& sums, int thread, const float* second, const Element& element) {
  const int row = thread / 32 * 16 + thread % 32 / 4, member = thread % 4;  // and 8 rows further on
  typename Sums::Fragment a[depth / 8];
#pragma unroll
  for (int l = 0; l < depth; l += 8)
#pragma unroll
    for (int e = 0; e < 4; ++e) a[l / 8].set(e, element(row + e % 2 * 8, l + e / 2 * 4 + member));
  const std::uint64_t b = swizzled_matrix(shared_address(second));
  wgmma_fence();
#pragma unroll
  for (int l = 0; l < depth; l += 8) sums.add(a[l / 8], swizzled_part(b, 0, l));
  wgmma_wait();
}

}  // namespace stepladder

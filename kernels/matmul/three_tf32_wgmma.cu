// three_tf32 with wgmma: the first factor is cut in two, big + small, in registers, the second when it
// is laid out anew before the product, [2, extent, depth]. That pass of 12 bytes an element takes 47
// microseconds of at best 834 at 4096³. The small products have sums of their own, so that the tile
// is 128 x 128: for each stage (128 + 2 · 128) · 32 floats and 3 · 2 · 128 · 128 · 32 FLOPs, 64 a byte.
//
// Three times the arithmetic of tf32_wgmma at 7.4 times the rate of fp32: expected gain over
// three_tf32 1.3 to 1.8. The bound: see three_tf32.cu; the TMA leaves the numbers as they are.
#include "kernels/common/cuda_mma.hpp"
#include "kernels/matmul/cuda_wgmma_plan.hpp"

namespace stepladder::matmul {
namespace {

template <int tile_columns>
class ThreeTf32Sums {
 public:
  static constexpr int columns = tile_columns;
  static constexpr int parts = 2;  // of the second factor: big, small
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
#pragma unroll
    for (int i = 0; i < columns / 128; ++i) {
      wgmma_64x128x8_tf32(small_[i], a.small, swizzled_part(b_big, 128 * i, 0));
      wgmma_64x128x8_tf32(small_[i], a.big, swizzled_part(b_small, 128 * i, 0));
      wgmma_64x128x8_tf32(big_[i], a.big, swizzled_part(b_big, 128 * i, 0));
    }
  }
  __device__ void use() {
#pragma unroll
    for (int i = 0; i < columns / 128; ++i) {
      use_sums(big_[i]);
      use_sums(small_[i]);
    }
  }
  __device__ float value(int i) const { return big_[i / 64][i % 64] + small_[i / 64][i % 64]; }

 private:
  float big_[columns / 128][64] = {}, small_[columns / 128][64] = {};
};

using Sums = ThreeTf32Sums<128>;  // two for each element: no registers are left for more columns

constexpr VariantInfo info{
    .name = "three_tf32_wgmma",
    .technique = Technique::cuda,
    .builds_on = "three_tf32",
    .adds = "wgmma, fed by the TMA, with the second factor cut in two beforehand",
    .place = Place::cuda,
    .epilogue = true,
    .bound_factor = 3,
    .operand_error = 0x1p-21,
};

const Registration registration{info, make_wgmma_plan<Sums, Sums>};

}  // namespace
}  // namespace stepladder::matmul

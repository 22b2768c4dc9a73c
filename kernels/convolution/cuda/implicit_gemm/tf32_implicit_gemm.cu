// implicit_gemm on the tensor cores. Their TF32 products (8-bit exponent, 10-bit mantissa, fp32
// accumulators) are many times as fast as FMAs. Operands are rounded once, before they are stored
// to shared memory. A warp computes 64 x 32 or 32 x 32 of the tile in products of 16 x 8 by 8 x 8:
//
//               ┌──┬──┬──┬──┐  4 fragments of B, 8 x 8
//     16 x 8  ┌─┼──┼──┼──┼──┤
//  fragments  │ │  │  │  │  │  of 16 x 8 accumulators a thread has two adjacent in row lane / 4
//       of A  ├─┼──┼──┼──┼──┤  and two in row lane / 4 + 8
//             │ │  │  │  │  │
//
// Expected: 1.5 to 2.5 times implicit_gemm on layers with enough blocks. The products alone would
// give 5 or more, but gathering costs the same instructions as before and is now the larger part.
// The README derives the error bound.
#include "kernels/common/cuda/mma.hpp"
#include "kernels/convolution/cuda/implicit_gemm/plan.hpp"

namespace stepladder::convolution {
namespace {

template <int m_, int n_, int warp_m>
struct TensorTile {
  static constexpr int m = m_, n = n_, k = 8, warp_n = 32;
  static constexpr int warps_n = n / warp_n, threads = 32 * (m / warp_m) * warps_n;
  static constexpr int thread_m = warp_m / 8, thread_n = warp_n / 4;
  static constexpr int vector_n = 2;  // adjacent accumulators of a thread along a row
  static constexpr int vector_m = 1;  // along a column
  static constexpr int speed = 5;     // products in the time of an FMA

  using Accumulators = float[thread_m][thread_n];
  using SharedA = float[k][m + 8];  // padded by 8: fragments are read without bank conflicts
  using SharedB = float[k][n + 8];

  __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }
  __device__ static int first_row() {
    return static_cast<int>(threadIdx.x) / 32 / warps_n * warp_m;
  }
  __device__ static int first_column() {
    return static_cast<int>(threadIdx.x) / 32 % warps_n * warp_n;
  }
  __device__ static int row(int i) { return first_row() + 8 * i + lane() / 4; }
  __device__ static int column(int j) {
    return first_column() + j / 2 * 8 + lane() % 4 * 2 + j % 2;
  }

  __device__ static float convert(float value) { return __uint_as_float(to_tf32(value)); }

  __device__ static void accumulate(const SharedA& a, const SharedB& b,
                                    Accumulators& accumulators) {
    const int group = lane() / 4, member = lane() % 4;
    std::uint32_t columns[warp_n / 8][2];
#pragma unroll
    for (int j = 0; j < warp_n / 8; ++j)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        columns[j][half] = __float_as_uint(b[member + 4 * half][first_column() + 8 * j + group]);
#pragma unroll
    for (int i = 0; i < thread_m; i += 2) {
      const std::uint32_t rows[4] = {
          __float_as_uint(a[member][row(i)]), __float_as_uint(a[member][row(i + 1)]),
          __float_as_uint(a[member + 4][row(i)]), __float_as_uint(a[member + 4][row(i + 1)])};
#pragma unroll
      for (int j = 0; j < thread_n; j += 2) {
        float c[4] = {accumulators[i][j], accumulators[i][j + 1], accumulators[i + 1][j],
                      accumulators[i + 1][j + 1]};
        mma_16x8x8_tf32(c, rows, columns[j / 2]);
        accumulators[i][j] = c[0], accumulators[i][j + 1] = c[1], accumulators[i + 1][j] = c[2],
        accumulators[i + 1][j + 1] = c[3];
      }
    }
  }
};

using TensorTiles = TileSizes<TensorTile<128, 128, 64>, TensorTile<64, 128, 64>,
                              TensorTile<64, 64, 32>, TensorTile<32, 64, 32>>;

std::unique_ptr<Plan> make(const Problem& p, const Resources&) {
  require_compute_capability(80);
  return make_implicit_gemm<TensorTiles>(p);
}

constexpr VariantInfo info{
    .name = "tf32_implicit_gemm",
    .technique = Technique::cuda,
    .builds_on = "implicit_gemm",
    .adds = "products on the tensor cores, operands rounded to TF32",
    .idea = Idea::tensor_cores,
    .precision = Precision::tf32,
    .nhwc = true,
    .place = Place::cuda,
    .bound_factor = 4,
    .operand_error = 0x1p-10 + 0x1p-22,
};

const Registration registration{info, make};

}  // namespace
}  // namespace stepladder::convolution

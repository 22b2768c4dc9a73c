// Emulates kernels/common/cuda/mma.hpp. Products are exact and their sum is truncated to fp32,
// not rounded, as measured on tensor cores (Fasi, Higham, Mikaitis, Pranesh: Numerical behavior of
// NVIDIA tensor cores, PeerJ Computer Science 7:e330, 2021).
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <source_location>

namespace stepladder {

inline std::uint32_t to_tf32(float value) {
  const std::uint32_t bits = __float_as_uint(value);
  constexpr std::uint32_t half = 0x1000, ignored = 0x1fff;
  return std::isfinite(value) ? (bits + half) & ~ignored : bits;
}

inline void mma_16x8x8_tf32(float (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                            const simt::Here& place = simt::Here::current()) {
  struct Fragments {
    float (&c)[4];
    const std::uint32_t (&a)[4];
    const std::uint32_t (&b)[2];
  } mine{c, a, b};
  simt::warp_collective(
      0xffffffffU, "mma_16x8x8_tf32", place, mine, [](const std::array<Fragments*, 32>& lanes) {
        const auto tf32 = [](std::uint32_t bits) {
          return double{__uint_as_float(bits & ~0x1fffU)};
        };
        double a[16][8], b[8][8];
        for (int lane = 0; lane < 32; ++lane) {
          if (lanes[lane] == nullptr)
            simt::fail("multiplies matrices in a warp with fewer than 32 threads");
          const int group = lane / 4, member = lane % 4;
          for (int i = 0; i < 4; ++i)
            a[group + i % 2 * 8][member + i / 2 * 4] = tf32(lanes[lane]->a[i]);
          for (int i = 0; i < 2; ++i) b[member + i * 4][group] = tf32(lanes[lane]->b[i]);
        }
        for (int lane = 0; lane < 32; ++lane) {
          const int group = lane / 4, member = lane % 4;
          for (int i = 0; i < 4; ++i) {
            const int row = group + i / 2 * 8, column = 2 * member + i % 2;
            double sum = lanes[lane]->c[i];
            for (int l = 0; l < 8; ++l) sum += a[row][l] * b[l][column];
            auto truncated = static_cast<float>(sum);
            if (std::abs(double{truncated}) > std::abs(sum))
              truncated = std::nextafter(truncated, 0.0F);
            lanes[lane]->c[i] = truncated;
          }
        }
      });
}

}  // namespace stepladder

// The FLOPs of a convolution are twice the products of its definition, counted one by one.
#include <gtest/gtest.h>

#include "harness/problem/random.hpp"
#include "kernels/convolution/convolution.hpp"

namespace stepladder::convolution {
namespace {

std::int64_t products(const Problem& p) {
  std::int64_t count = 0;
  for (std::int64_t y = 0; y < p.out_h(); ++y)
    for (std::int64_t x = 0; x < p.out_w(); ++x)
      for (std::int64_t r = 0; r < p.kernel_h; ++r)
        for (std::int64_t s = 0; s < p.kernel_w; ++s) {
          const std::int64_t h = y * p.stride_h - p.pad_h + r, w = x * p.stride_w - p.pad_w + s;
          if (h >= 0 && h < p.height && w >= 0 && w < p.width) ++count;
        }
  return p.batch * p.out_channels * p.group_in() * count;
}

TEST(ConvolutionFlops, AreTwoPerProductOutsidePadding) {
  Random random(1);
  for (int draw = 0; draw < 500; ++draw) {
    Problem p;
    p.groups = random.integer(1, 3);
    p.batch = random.integer(1, 3);
    p.in_channels = p.groups * random.integer(1, 3);
    p.out_channels = p.groups * random.integer(1, 3);
    p.kernel_h = random.integer(1, 6), p.kernel_w = random.integer(1, 6);
    p.stride_h = random.integer(1, 4), p.stride_w = random.integer(1, 4);
    p.pad_h = random.integer(0, 7), p.pad_w = random.integer(0, 7);
    p.height = p.kernel_h + random.integer(0, 9), p.width = p.kernel_w + random.integer(0, 9);
    for (const Direction direction :
         {Direction::forward, Direction::backward_data, Direction::backward_weights}) {
      p.direction = direction;
      EXPECT_EQ(flops(p), 2.0 * static_cast<double>(products(p))) << shape(p);
    }
  }
}

}  // namespace
}  // namespace stepladder::convolution

// The FLOPs and bytes of a product are those of its definition, counted one by one.
#include <gtest/gtest.h>

#include "harness/problem/random.hpp"
#include "kernels/matmul/matmul.hpp"

namespace stepladder::matmul {
namespace {

double counted_flops(const Problem& p) {
  double count = 0;
  for (std::int64_t i = 0; i < p.m; ++i)
    for (std::int64_t j = 0; j < (p.triangle ? i + 1 : p.n); ++j) {
      for (std::int64_t l = 0; l < p.k; ++l) count += 2;  // a multiplication and an addition
      if (has_bias(p.epilogue)) count += 1;
      if (p.epilogue == Epilogue::bias_relu || p.epilogue == Epilogue::relu_gradient) count += 1;
    }
  return count;
}

TEST(MatmulFlops, AreTwoPerProductAndOnePerOperationOfTheEpilogue) {
  Random random(1);
  for (int draw = 0; draw < 200; ++draw) {
    Problem p{random.integer(1, 9), random.integer(1, 9), random.integer(1, 9), random.coin(),
              random.coin()};
    for (const Epilogue epilogue :
         {Epilogue::none, Epilogue::bias, Epilogue::bias_relu, Epilogue::relu_gradient}) {
      p.epilogue = epilogue;
      EXPECT_EQ(flops(p), counted_flops(p)) << shape(p);
    }
  }
}

TEST(MatmulFlops, OfATriangleAreThoseOfItsElements) {
  for (std::int64_t n = 1; n < 9; ++n) {
    const Problem p{n, n, 7, false, true, Epilogue::none, true};
    EXPECT_EQ(flops(p), counted_flops(p)) << shape(p);
    EXPECT_EQ(flops(p), 7.0 * static_cast<double>(n * (n + 1)));
    EXPECT_EQ(bytes_read(p), 4.0 * 2 * 7 * static_cast<double>(n));
    EXPECT_EQ(bytes_written(p), 2.0 * static_cast<double>(n * (n + 1)));
  }
}

TEST(MatmulFlops, BytesAreThoseOfEachOperandOnce) {
  Problem p{3, 5, 7};
  EXPECT_EQ(bytes_read(p), 4.0 * (3 * 7 + 7 * 5));
  EXPECT_EQ(bytes_written(p), 4.0 * 3 * 5);
  p.epilogue = Epilogue::bias_relu;
  EXPECT_EQ(bytes_read(p), 4.0 * (3 * 7 + 7 * 5 + 5));
  p.epilogue = Epilogue::relu_gradient;
  EXPECT_EQ(bytes_read(p), 4.0 * (3 * 7 + 7 * 5 + 3 * 5));
}

}  // namespace
}  // namespace stepladder::matmul

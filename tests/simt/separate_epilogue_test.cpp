// The epilogue as a separate pass over C, as after cuBLAS. Here the test computes the product.
#include "kernels/matmul/cuda/separate_epilogue.hpp"

#include <gtest/gtest.h>

#include "harness/problem/random.hpp"
#include "kernels/common/cuda/plan.hpp"
#include "kernels/matmul/cuda/element.hpp"
#include "tests/verdict.hpp"

namespace stepladder {
namespace {

using matmul::Epilogue, matmul::Matmul, matmul::Operands, matmul::Problem;

void product_then_epilogue(const Problem& p, const Operands& o) {
  for (std::int64_t i = 0; i < p.m; ++i)
    for (std::int64_t j = 0; j < p.n; ++j) o.c[i * p.n + j] = matmul::element(p, o, i, j);
  matmul::separate_epilogue(p, o);
}

TEST(SeparateEpilogue, FinishesEveryElement) {
  Variant variant = unregistered<Matmul>("separate", make_cuda_plan<Matmul, product_then_epilogue>);
  VariantInfo info = *variant.info;
  info.place = Place::cuda;
  variant.info = variant.entry.info = &info;
  Random random(8);
  for (int round = 0; round < 40; ++round) {
    const std::int64_t of = round % 2 == 0 ? 4 : 1;  // n a multiple of the vector, or any
    const Problem p{.m = random.integer(1, 40),
                    .n = of * random.integer(1, 200 / of),
                    .k = random.integer(1, 5),
                    .epilogue = static_cast<Epilogue>(random.integer(0, 3))};
    EXPECT_TRUE(passes<Matmul>(p, variant));
  }
}

}  // namespace
}  // namespace stepladder

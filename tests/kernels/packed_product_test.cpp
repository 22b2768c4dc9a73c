// The packed product where random problems seldom lead: several blocks of K, while the strips of A
// pass by one panel of B at a time and prefetch the next; a transposed A with few steps of K.
#include <gtest/gtest.h>

#include "kernels/matmul/matmul.hpp"
#include "tests/kernels/rungs.hpp"

namespace stepladder {
namespace {

TEST(PackedProduct, PassesWithPanelsThatArePrefetched) {
  using matmul::Epilogue;
  const std::vector<Variant> rungs = rungs_here(matmul_type(), [](const VariantInfo& info) {
    const std::string name = info.name;
    return name.starts_with("packed") || name.starts_with("prepacked") || name == "fused";
  });
  ASSERT_FALSE(rungs.empty());
  for (const int threads : {1, 3})
    for (const matmul::Problem& p : {matmul::Problem{40, 130, 1100},
                                     {40, 130, 1100, false, true},
                                     {33, 96, 600, false, false, Epilogue::bias_relu},
                                     {120, 200, 1030, true, false},
                                     {16, 2000, 520},  // fewer strips than lines of a panel
                                     {256, 500, 70, true, false},
                                     {300, 500, 64, true, false, Epilogue::bias}})
      EXPECT_GT(expect_passed<matmul::Matmul>(p, rungs, threads), 0);
}

}  // namespace
}  // namespace stepladder

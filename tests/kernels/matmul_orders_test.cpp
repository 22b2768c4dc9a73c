// The rungs packed, packed_openmp, fused, skinny and short_k on sizes that take each of their loop
// orders, tiles and sources of B. Random problems meet some of them rarely.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/matmul/matmul.hpp"
#include "tests/kernels/rungs.hpp"

namespace stepladder::matmul {
namespace {

struct Size {
  const char* takes;
  std::int64_t m, n, k;
};

// Sizes are odd, so that all have tails, but for those of a panel.
constexpr Size sizes[] = {
    {"one strip of rows, B in place", 5, 211, 37},
    {"several strips, one panel at a time", 61, 211, 37},
    {"more than 240 rows: several panels at a time", 259, 211, 37},
    {"a transposed A packed once for all panels", 61, 211, 307},
    {"a block of B of fewer panels than C has", 259, 451, 307},
    {"several blocks of K", 251, 53, 1061},
    {"a C of more than 1 MiB", 231, 1201, 53},
    {"few steps of K, a tile of C prefetched", 521, 139, 7},
    {"few steps of K, a row of tiles in one call", 43, 451, 7},
    {"one vector of columns, tall tiles", 301, 7, 77},
    {"two vectors of columns, tall tiles", 301, 27, 77},
    {"rows of A 1 KiB apart, as many in a tile as L1 has ways", 67, 13, 512},
    {"a B as wide as a panel of one vector, read in place", 67, 16, 1061},
    {"a B as wide as a panel of two vectors, or of one tile", 67, 32, 1061},
    {"a B as wide as a panel of three vectors", 67, 48, 1061},
    {"a long K and a small C: threads divide K", 59, 67, 8209},
    {"threads divide K, and C has fewer rows than they", 2, 131, 60013},
    {"one row, a wide tile", 1, 1201, 207},
    {"one row, several accumulators for each element", 1, 19, 1061},
    {"one column", 1201, 1, 207},
    {"one step of K", 67, 331, 1},
    {"16 steps of K, strips of one row", 67, 331, 16},
    {"11 steps of K, several blocks of columns", 19, 1201, 11},
    {"few steps of K, a row of C is less than a vector", 301, 13, 5},
    {"a vector reaches beyond all rows of a thread", 4, 3, 3},
    {"three rows", 3, 577, 131},
    {"16 rows, more than the L2 of three threads hold", 16, 5801, 331},
    {"64 rows, which L2 holds", 64, 331, 53},
    {"23 rows, several tiles of dot products", 23, 151, 277},
    {"one tile of C, more than L2 holds, threads divide K", 5, 61, 27001},
};

class MatmulOrders : public testing::TestWithParam<const char*> {};

TEST_P(MatmulOrders, Pass) {
  int ran = 0;
  const std::vector<Variant> variants = rungs_named(matmul_type(), GetParam());
  const VariantInfo& rung = *variants.front().info;
  for (const Size& size : sizes)
    for (const bool transpose_a : {false, true})
      for (const bool transpose_b : {false, true}) {
        const Problem problem{.m = size.m,
                              .n = size.n,
                              .k = size.k,
                              .transpose_a = transpose_a,
                              .transpose_b = transpose_b,
                              .epilogue = rung.epilogue ? Epilogue::bias_relu : Epilogue::none};
        ran += expect_passed<Matmul>(problem, variants, rung.threaded ? 3 : 1,
                                     " (" + std::string(size.takes) + ")");
      }
  EXPECT_GE(ran, 18) << "too many sizes are unavailable";
}

INSTANTIATE_TEST_SUITE_P(All, MatmulOrders,
                         testing::Values("packed", "packed_openmp", "fused", "skinny", "short_k"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace stepladder::matmul

// The cost model of messages: curves and the predictions of the variants.
#include "kernels/common/links.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <string>

#include "kernels/all_reduce/all_reduce.hpp"

namespace stepladder {
namespace {

TEST(CostCurve, IsZeroWithoutPoints) {
  EXPECT_TRUE(CostCurve{}.empty());
  EXPECT_EQ(CostCurve{}(0), 0);
  EXPECT_EQ(CostCurve{}(1e6), 0);
}

TEST(CostCurve, PassesThroughItsPointsAndIsLinearBetweenThem) {
  const CostCurve curve({{100, 1}, {200, 3}, {1000, 5}});
  EXPECT_DOUBLE_EQ(curve(100), 1);
  EXPECT_DOUBLE_EQ(curve(150), 2);
  EXPECT_DOUBLE_EQ(curve(200), 3);
  EXPECT_DOUBLE_EQ(curve(600), 4);
  EXPECT_DOUBLE_EQ(curve(1000), 5);
  // It continues the last segment and is constant below the first point.
  EXPECT_DOUBLE_EQ(curve(0), 1) << "the shortest message that was measured is mostly latency";
  EXPECT_DOUBLE_EQ(curve(1400), 6);
}

TEST(CostCurve, ALineIsAlphaPlusBytesTimesBeta) {
  const CostCurve line = CostCurve::line(2e-6, 1e-9);
  for (const double bytes : {0.0, 1.0, 1e3, 1e6, 1e9, 1e11})
    EXPECT_NEAR(line(bytes), 2e-6 + bytes * 1e-9, 1e-9 * (2e-6 + bytes * 1e-9)) << bytes;
}

// Links on which every message takes alpha + n beta; copies are free.
Links uniform_links(double alpha, double beta, double gamma) {
  const CostCurve line = CostCurve::line(alpha, beta);
  return {.within = {line, line, line},
          .between = {},
          .add = CostCurve::line(0, gamma),
          .copy = CostCurve::line(0, 0),
          .stream = CostCurve::line(0, 0),
          .handoff = CostCurve::line(0, 0),
          .code = 0};
}

detail::CostFunction cost_of(const std::string& name) {
  for (const detail::Entry& entry : detail::entries(all_reduce::AllReduce::name))
    if (entry.info->name == name) return entry.cost;
  return nullptr;
}

TEST(CommunicationCost, TheSlowerKindOfLinkDecidesForFlatAlgorithms) {
  Links links;
  links.within.send = CostCurve::line(1, 0);
  links.between.send = CostCurve::line(2, 0);
  const CommunicationCost one{.p = 4, .n = 8, .g = 4, .l = links};
  const CommunicationCost two{.p = 4, .n = 8, .g = 2, .l = links};
  EXPECT_TRUE(one.one_node());
  EXPECT_FALSE(two.one_node());
  EXPECT_EQ(one.flat().send(8), 1);
  EXPECT_EQ(two.flat().send(8), 2);
}

// The formulas of the README, for p a power of two.
TEST(CommunicationCost, PredictionsAgreeWithTheFormulas) {
  if (cost_of("ring") == nullptr) GTEST_SKIP() << "built without MPI";
  const double alpha = 1e-6, beta = 1e-9, gamma = 3e-10;
  const Links links = uniform_links(alpha, beta, gamma);
  using Formula = std::function<double(double p, double n, double rounds)>;
  const auto star = [&](double p, double n, double) {
    return 2 * (p - 1) * (alpha + n * beta) + (p - 1) * n * gamma;
  };
  const std::map<std::string, Formula> formulas{
      {"gather_broadcast", star},
      {"token_ring", star},
      {"binomial_tree",
       [&](double, double n, double rounds) {
         return 2 * rounds * (alpha + n * beta) + rounds * n * gamma;
       }},
      {"recursive_doubling",
       [&](double, double n, double rounds) { return rounds * (alpha + n * beta + n * gamma); }},
      {"ring", [&](double p, double n,
                   double) { return 2 * (p - 1) * alpha + (p - 1) / p * n * (2 * beta + gamma); }},
      {"rabenseifner",
       [&](double p, double n, double rounds) {
         return 2 * rounds * alpha + (p - 1) / p * n * (2 * beta + gamma);
       }},
  };
  for (const auto& [name, formula] : formulas)
    for (const double rounds : {1.0, 2.0, 3.0, 10.0})
      for (const double n : {4.0, 4096.0, 1e8}) {
        const double p = std::exp2(rounds);
        const double predicted = cost_of(name)({.p = p, .n = n, .g = p, .l = links});
        const double expected = formula(p, n, rounds);
        EXPECT_NEAR(predicted, expected, 1e-9 * expected) << name << " " << p << " " << n;
      }
}

// With additions that hide behind transfers, the pipelined rungs approach the bound of bandwidth.
TEST(CommunicationCost, LongVectorsApproachTheBandwidthBound) {
  if (cost_of("ring") == nullptr) GTEST_SKIP() << "built without MPI";
  const double beta = 1e-9;
  Links links = uniform_links(1e-6, beta, 3e-10);
  links.between = links.within;
  for (const double p : {2.0, 3.0, 8.0, 9.0}) {
    const CommunicationCost c{.p = p, .n = 1e9, .g = 1, .l = links};
    const double bound = 2 * (p - 1) / p * c.n * beta;
    EXPECT_GT(cost_of("segmented_ring")(c), bound);
    EXPECT_LT(cost_of("segmented_ring")(c), 1.02 * bound) << p;
    EXPECT_GT(cost_of("double_binary_tree")(c), bound);
    EXPECT_LT(cost_of("double_binary_tree")(c), 1.1 * (2 * c.n * beta + c.n * 3e-10)) << p;
    EXPECT_LT(cost_of("segmented_ring")(c), cost_of("ring")(c)) << p;
  }
}

// The reason for the trees: the latency of a ring grows with p.
TEST(CommunicationCost, ShortVectorsFavourTrees) {
  if (cost_of("ring") == nullptr) GTEST_SKIP() << "built without MPI";
  const Links links = uniform_links(25e-6, 8e-10, 1e-10);
  const CommunicationCost c{.p = 1024, .n = 1e6, .g = 1024, .l = links};
  EXPECT_LT(cost_of("rabenseifner")(c), cost_of("ring")(c) / 10);
  EXPECT_LT(cost_of("double_binary_tree")(c), cost_of("ring")(c) / 10);
  EXPECT_LT(cost_of("binomial_tree")(c), cost_of("gather_broadcast")(c) / 50);
}

}  // namespace
}  // namespace stepladder

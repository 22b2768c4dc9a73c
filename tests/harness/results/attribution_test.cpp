// attribute() on times whose effects are known.
#include "harness/results/attribution.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace stepladder {
namespace {

constexpr double exact = 1e-12;

// `speed` of a corner, over that of the first.
std::vector<CornerTime> corners_of(int count, const std::function<double(unsigned)>& speed,
                                   double error = 0) {
  std::vector<CornerTime> corners;
  for (unsigned bits = 0; bits < 1U << count; ++bits) {
    const double seconds = 1e-3 / speed(bits);
    corners.push_back({seconds, seconds * std::exp(-error), seconds * std::exp(error)});
  }
  return corners;
}

double product_of_averages(const Attribution& found) {
  double product = 1;
  for (const Attribution::Technique& t : found.techniques) product *= t.average.value;
  return product;
}

TEST(Attribution, IndependentTechniquesGainTheSameAfterAnyOthers) {
  const double gains[] = {2, 1.5, 0.8, 4};
  const Attribution found = attribute(corners_of(4, [&](unsigned bits) {
    double speed = 1;
    for (int i = 0; i < 4; ++i)
      if ((bits >> i & 1) != 0) speed *= gains[i];
    return speed;
  }));
  ASSERT_EQ(found.techniques.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    const Attribution::Technique& t = found.techniques[i];
    for (const Factor& factor : {t.alone, t.last, t.average, t.least, t.most})
      EXPECT_NEAR(factor.value, gains[i], exact);
  }
  ASSERT_EQ(found.pairs.size(), 6U);
  for (const Attribution::Pair& pair : found.pairs)
    EXPECT_NEAR(pair.together.value, 1, exact) << pair.first << " " << pair.second;
  EXPECT_NEAR(found.total.value, 2 * 1.5 * 0.8 * 4, exact);
  EXPECT_NEAR(found.fastest.value, 2 * 1.5 * 4, exact);
  EXPECT_EQ(found.fastest_with, 0b1011U);
}

TEST(Attribution, APairThatHelpsEachOtherSharesWhatItGainsTogether) {
  constexpr double gain_0 = 2, gain_1 = 3, gain_2 = 5, bonus = 1.44;
  const Attribution found = attribute(corners_of(3, [](unsigned bits) {
    return ((bits & 1) != 0 ? gain_0 : 1) * ((bits & 2) != 0 ? gain_1 : 1) *
           ((bits & 4) != 0 ? gain_2 : 1) * ((bits & 3) == 3 ? bonus : 1);
  }));
  const Attribution::Technique& first = found.techniques[0];
  EXPECT_NEAR(first.alone.value, gain_0, exact);
  EXPECT_NEAR(first.last.value, gain_0 * bonus, exact);
  EXPECT_NEAR(first.average.value, gain_0 * std::sqrt(bonus), exact);
  EXPECT_NEAR(first.least.value, gain_0, exact);
  EXPECT_NEAR(first.most.value, gain_0 * bonus, exact);
  EXPECT_EQ(first.least_after & 2U, 0U);
  EXPECT_EQ(first.most_after & 2U, 2U);
  EXPECT_NEAR(found.techniques[1].average.value, gain_1 * std::sqrt(bonus), exact);
  EXPECT_NEAR(found.techniques[2].average.value, gain_2, exact);
  for (const Attribution::Pair& pair : found.pairs)
    EXPECT_NEAR(pair.together.value, pair.first == 0 && pair.second == 1 ? bonus : 1, exact);
}

// Two of three techniques reach the roof, whichever they are: the third gains nothing.
TEST(Attribution, ARoofIsSharedByAllWhoReachIt) {
  const Attribution found = attribute(corners_of(3, [](unsigned bits) {
    const int on = __builtin_popcount(bits);
    return on == 0 ? 1.0 : on == 1 ? 2.0 : 4.0;
  }));
  for (const Attribution::Technique& t : found.techniques) {
    EXPECT_NEAR(t.alone.value, 2, exact);
    EXPECT_NEAR(t.last.value, 1, exact);
    EXPECT_NEAR(t.average.value, std::cbrt(4.0), exact);
  }
  // (4 / (2 · 2))^1/2 · (4 · 2 / (4 · 4))^1/2
  for (const Attribution::Pair& pair : found.pairs)
    EXPECT_NEAR(pair.together.value, std::sqrt(0.5), exact);
}

TEST(Attribution, TheAveragesMultiplyToTheTotalWhateverTheTimes) {
  const std::vector<CornerTime> corners = corners_of(5, [](unsigned bits) {
    return 1 + (bits * 2654435761U >> 16U) % 97 / 7.0;  // no pattern
  });
  const Attribution found = attribute(corners);
  EXPECT_NEAR(product_of_averages(found) / found.total.value, 1, exact);
  EXPECT_NEAR(found.total.value, corners.front().seconds / corners.back().seconds, exact);
  for (const Attribution::Technique& t : found.techniques) {
    EXPECT_LE(t.least.value, std::min(t.alone.value, t.last.value));
    EXPECT_GE(t.most.value, std::max(t.alone.value, t.last.value));
    EXPECT_GE(t.average.value, t.least.value);
    EXPECT_LE(t.average.value, t.most.value);
  }
}

TEST(Attribution, IntervalsOfAGainHoldThoseOfBothItsTimes) {
  constexpr double half = 0.05;  // of the logarithm of each time
  const Attribution found = attribute(corners_of(
      2, [](unsigned bits) { return 1.0 + bits; }, half));
  const Factor& alone = found.techniques[0].alone;
  EXPECT_NEAR(std::log(alone.high / alone.value), half * std::sqrt(2.0), 1e-9);
  EXPECT_NEAR(std::log(alone.value / alone.low), half * std::sqrt(2.0), 1e-9);
  // weights 1/2, 1/2 of two independent gains
  const Factor& average = found.techniques[0].average;
  EXPECT_NEAR(std::log(average.high / average.value), half, 1e-9);
}

TEST(Attribution, NamesSetsInWords) {
  const std::vector<std::string> names = {"blocking", "vectors", "tile"};
  EXPECT_EQ(names_of(0, names), "nothing");
  EXPECT_EQ(names_of(4, names), "tile");
  EXPECT_EQ(names_of(3, names), "blocking and vectors");
  EXPECT_EQ(names_of(7, names), "blocking, vectors and tile");
}

}  // namespace
}  // namespace stepladder

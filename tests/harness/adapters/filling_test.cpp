// What the adapters share: values that make a wrong result visible, bounds, blocks, and what suites
// may ask for.
#include "harness/adapters/filling.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/adapters/typed_case.hpp"
#include "kernels/matmul/matmul.hpp"
#include "tests/error_messages.hpp"

namespace stepladder {
namespace {

// --- suites --------------------------------------------------------------------------------------

TEST(Filling, AnOperandHasTwoToThe48ElementsAtMost) {
  const std::vector<std::string> header;
  const CsvRow row("suite.csv:7", &header, {});
  constexpr std::int64_t most = 1 << 24;
  EXPECT_EQ(error_of([&] { expect_countable(row, "a", {most, most}); }), "");
  EXPECT_EQ(error_of([&] { expect_countable(row, "a", {}); }), "");
  EXPECT_TRUE(says(error_of([&] {
                     expect_countable(row, "a", {most, most + 1});
                   }),
                   {"suite.csv:7", "a has 2.81e+14 elements; expected 2.8e14 at most"}));
  // Their product has no place in 64 bits.
  EXPECT_NE(error_of([&] { expect_countable(row, "a", {most, most, most, most}); }), "");
}

TEST(Filling, ALayoutIsOneOfFourAndByDefaultNchw) {
  const std::vector<std::string> header = {"layout", "to"};
  const auto read = [&](const std::string& layout, const std::string& to, const char* column) {
    return read_layout(CsvRow("suite.csv:7", &header, {layout, to}), column);
  };
  EXPECT_EQ(read("", "chwn", "layout"), Layout::nchw);
  EXPECT_EQ(read("nchw", "chwn", "layout"), Layout::nchw);
  EXPECT_EQ(read("nhwc", "chwn", "layout"), Layout::nhwc);
  EXPECT_EQ(read("nchw16c", "chwn", "layout"), Layout::nchw16c);
  EXPECT_EQ(read("nhwc", "chwn", "to"), Layout::chwn);
  EXPECT_EQ(read_layout(CsvRow("suite.csv:7", &header, {"chwn", "nhwc"})), Layout::chwn);
  EXPECT_TRUE(
      says(error_of([&] { read("nhwc", "hwcn", "to"); }),
           {"suite.csv:7", "column to holds \"hwcn\"; expected nothing, nchw, nhwc, chwn"}));
}

TEST(Filling, AProblemIsDescribedByItsContract) {
  const matmul::Problem p{2, 3, 5};
  const ProblemInfo info = describe("matmul", "row-major", p, "squares", "small");
  EXPECT_EQ(info.primitive, "matmul");
  EXPECT_EQ(info.direction, direction(p));
  EXPECT_EQ(info.suite, "squares");
  EXPECT_EQ(info.name, "small");
  EXPECT_EQ(info.shape, shape(p));
  EXPECT_EQ(info.layout, "row-major");
  EXPECT_EQ(info.flops, 2 * 2 * 3 * 5);
  EXPECT_EQ(info.bytes_read, 4 * (2 * 5 + 5 * 3));
  EXPECT_EQ(info.bytes_written, 4 * 2 * 3);
  EXPECT_EQ(info.ranks, 1);
}

// --- values and bounds ---------------------------------------------------------------------------

// 20 channels are two blocks of 16, the last with 12 channels of padding.
TEST(Filling, PaddingChannelsAreZeroAndNoOthers) {
  constexpr std::int64_t outer = 3, channels = 20, inner = 5;
  std::vector<float> values(outer * 32 * inner + 1, 7);
  clear_padding(Layout::nchw16c, outer, channels, inner, values.data());
  for (std::int64_t i = 0; i < outer; ++i)
    for (std::int64_t channel = 0; channel < 32; ++channel)
      for (std::int64_t j = 0; j < inner; ++j) {
        const std::int64_t at = ((i * 2 + channel / 16) * inner + j) * 16 + channel % 16;
        EXPECT_EQ(values[static_cast<std::size_t>(at)], channel < channels ? 7 : 0)
            << i << " " << channel << " " << j;
      }
  EXPECT_EQ(values.back(), 7);
}

TEST(Filling, WithoutPaddingNoValueIsChanged) {
  for (const auto& [layout, channels] : std::vector<std::pair<Layout, std::int64_t>>{
           {Layout::nchw16c, 32}, {Layout::nchw, 20}, {Layout::nhwc, 20}, {Layout::chwn, 20}}) {
    std::vector<float> values(3 * 32 * 5, 7);
    clear_padding(layout, 3, channels, 5, values.data());
    EXPECT_EQ(values, std::vector<float>(3 * 32 * 5, 7));
  }
}

TEST(Filling, AllRanksHaveTheSameStreamThatDependsOnTheSeed) {
  std::set<std::uint64_t> streams;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    EXPECT_EQ(stream_of_ranks(Random(seed)), stream_of_ranks(Random(seed)));
    streams.insert(stream_of_ranks(Random(seed)));
  }
  EXPECT_EQ(streams.size(), 100U);
  EXPECT_GT(*streams.rbegin(), std::uint64_t{1} << 62U) << "63 bits are drawn";
}

// By hand: n u up to 8^2 terms, then 8 sqrt(n) u but for terms of second order.
TEST(Filling, TheBoundOfRoundingsHoldsForSumsOfAnyLength) {
  const double u = std::pow(2.0, -24);
  for (const double n : {1.0, 3.0, 64.0}) EXPECT_DOUBLE_EQ(rounding_bound(n), n * u) << n;
  EXPECT_NEAR(rounding_bound(1e4) / u, 800, 0.1);
  EXPECT_NEAR(rounding_bound(0x1p24) * 512, 1, 2e-3);
  double former = 0;
  for (double n = 1; n < 0x1p48; n *= 1.5) {
    EXPECT_GT(rounding_bound(n), former) << n;
    former = rounding_bound(n);
  }
  EXPECT_TRUE(std::isfinite(former));
}

TEST(Filling, TheBoundOfASumIsTheNextFloatAboveThatOfTermsAndTwo) {
  Expected found;
  bound_sums(Tier::accuracy, 10, {0.0, 1.0, 3.5}, found);
  const double factor = rounding_bound(12);
  EXPECT_EQ(found.unit, factor);
  ASSERT_EQ(found.bound.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto nearest = static_cast<float>(factor * (i == 0 ? 0.0 : i == 1 ? 1.0 : 3.5));
    EXPECT_EQ(found.bound[i], std::nextafter(nearest, 1.0F)) << i;
  }
  bound_sums(Tier::exact, 10, {0.0, 1.0}, found);
  EXPECT_EQ(found.bound, (std::vector<float>{0, 0}));
  EXPECT_EQ(found.unit, 0);
}

TEST(Filling, IntegersAreAsLargeAsTheirSumsAllow) {
  for (const auto& [terms, largest] : std::vector<std::pair<double, float>>{
           {1, 8}, {0x1p18, 8}, {0x1p18 * 1.1, 7}, {0x1p20, 4}, {0x1p24, 1}, {0x1p30, 1}}) {
    Random random(3);
    std::vector<float> values(2000, 77);
    fill_values(Tier::exact, terms, random, values.data(), 1999);
    EXPECT_EQ(values.back(), 77);
    values.pop_back();
    EXPECT_EQ(*std::ranges::max_element(values), largest) << terms;
    EXPECT_EQ(*std::ranges::min_element(values), -largest) << terms;
    // No 0 among -1 and 1: a term of 0 could be lost unseen.
    EXPECT_EQ(std::set<float>(values.begin(), values.end()).size(),
              static_cast<std::size_t>(2 * largest) + (largest > 1 ? 1 : 0));
    fill_values(Tier::accuracy, terms, random, values.data(), 1999);
    EXPECT_GT(*std::ranges::max_element(values), 0.99F);
    EXPECT_LE(*std::ranges::max_element(values), 1.0F);
    EXPECT_LT(*std::ranges::min_element(values), -0.49F);
    EXPECT_GE(*std::ranges::min_element(values), -0.51F);
  }
}

TEST(Filling, NarrowFormatsRoundEveryValueTowardsZero) {
  Random random(3);
  std::vector<float> values(2000);
  fill_values(Tier::accuracy, 1, random, values.data(), 2000);
  for (const float value : values) {
    if (std::abs(value) < 0x1p-10F) continue;
    for (const int bits : {8, 11}) {  // of bf16; of fp16 and TF32
      int exponent = 0;
      const float scaled = std::ldexp(std::frexp(value, &exponent), bits);
      const float lost = std::abs(scaled) - std::abs(std::nearbyint(scaled));
      EXPECT_GE(lost, 0.25F) << value;
      EXPECT_LE(lost, 0.5F) << value;
    }
  }
}

// Computed by another program from the definition of SplitMix64.
TEST(Filling, ValuesOfRanksAreTheSameOnEveryMachine) {
  struct Row {
    int rank;
    std::int64_t i;
    float exact, accuracy;
  };
  for (const Row& row : {Row{0, 0, 21, 0x1.e73978p-1F}, Row{1, 0, -45, 0x1.f6ed5ap-1F},
                         Row{2, 7, -27, -0x1.210e9p-1F}, Row{2, 999, 15, -0x1.d6bf16p-3F}}) {
    EXPECT_EQ(value_of_rank(Tier::exact, 3, 99, row.rank, row.i), row.exact);
    EXPECT_EQ(value_of_rank(Tier::accuracy, 3, 99, row.rank, row.i), row.accuracy);
  }
}

TEST(Filling, EveryRankHasValuesOfItsOwnThatOthersCanCompute) {
  std::set<float> exact, all;
  double sum = 0;
  for (int rank = 0; rank < 3; ++rank)
    for (std::int64_t i = 0; i < 1000; ++i) {
      const float whole = value_of_rank(Tier::exact, 3, 99, rank, i);
      EXPECT_EQ(whole, value_of_rank(Tier::exact, 3, 99, rank, i));
      EXPECT_EQ(std::fmod(whole, 3.0F), 0);
      exact.insert(whole);
      const float value = value_of_rank(Tier::accuracy, 3, 99, rank, i);
      EXPECT_GE(value, -1);
      EXPECT_LE(value, 1);
      all.insert(value);
      sum += value;
    }
  EXPECT_EQ(exact.size(), 33U);
  EXPECT_EQ(*exact.begin(), -48);
  EXPECT_EQ(*exact.rbegin(), 48);
  EXPECT_GT(all.size(), 2990U);
  EXPECT_LT(std::abs(sum / 3000), 0.05);
  EXPECT_NE(value_of_rank(Tier::accuracy, 1, 99, 0, 1), value_of_rank(Tier::accuracy, 1, 98, 0, 1));
}

TEST(Filling, ABlockIsCopiedRowByRow) {
  std::vector<int> whole(2 * 4 * 5);
  for (std::size_t i = 0; i < whole.size(); ++i) whole[i] = static_cast<int>(i);
  std::vector<int> values = {1, 2, 3};
  const OperandBlock block{.first = 6, .rows = 2, .columns = 3, .stride = 5};
  copy_block(whole, block, 1, values);
  EXPECT_EQ(values, (std::vector<int>{6, 7, 8, 11, 12, 13}));
  copy_block(whole, block, 2, values);
  EXPECT_EQ(values, (std::vector<int>{12, 13, 14, 15, 16, 17, 22, 23, 24, 25, 26, 27}));
  copy_block(std::vector<int>{}, block, 2, values);
  EXPECT_TRUE(values.empty());
  EXPECT_EQ(block.count(), 6);
}

}  // namespace
}  // namespace stepladder

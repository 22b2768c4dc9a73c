// The drift of a round, the medians of visits and the spread within them, by hand.
#include "harness/measure/drift.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace stepladder {
namespace {

TEST(Drift, MedianOfTheLogarithms) {
  EXPECT_DOUBLE_EQ(median_log({{0, 0, 3, ""}, {1, 0, 1, ""}, {2, 0, 7, ""}, {3, 0, 2, ""}}), 2.5);
}

// In round 2 the machine is slower for all rows by 0.5, in round 3 faster by 0.2.
TEST(Drift, WhatAllRowsOfARoundHaveInCommonIsTakenOff) {
  const double drift[] = {0, 0, 0.5, -0.2, 0};
  Group group(4);
  for (std::size_t row = 0; row < group.size(); ++row)
    for (std::int64_t round = 0; round < 5; ++round)
      group[row].push_back({round, 0, static_cast<double>(row) + drift[round], ""});
  group[0][1].log_seconds += 0.25;  // of this row alone
  const std::vector<Estimate> found = estimates(group);
  ASSERT_EQ(found.size(), 4U);
  for (std::size_t row = 0; row < found.size(); ++row) {
    EXPECT_NEAR(found[row].value, static_cast<double>(row), 1e-12);
    EXPECT_EQ(found[row].centers.size(), 1U);
    EXPECT_NEAR(found[row].within, 0, 1e-12);
  }
}

// The drift is the median of the others: of one row alone the rest keep no trace, and its own
// stays.
TEST(Drift, WhatOneRowHasAloneStays) {
  Group group(4);
  for (std::size_t row = 0; row < group.size(); ++row)
    for (std::int64_t round = 0; round < 3; ++round) group[row].push_back({round, round, 1, ""});
  group[2][1].log_seconds = 1.75;
  const std::vector<Estimate> found = estimates(group);
  EXPECT_EQ(found[2].centers, (std::vector<double>{1, 1.75, 1}));
  EXPECT_EQ(found[0].centers, (std::vector<double>{1, 1, 1}));
  EXPECT_EQ(found[3].centers, (std::vector<double>{1, 1, 1}));
}

// A row has no drift taken off unless three others are in its round.
TEST(Drift, TwoOthersTellNoDrift) {
  for (const std::size_t rows : {3, 4}) {
    Group group(rows);
    for (std::vector<Repetition>& row : group)
      for (std::int64_t round = 0; round < 3; ++round)
        row.push_back({round, round, round == 1 ? 0.5 : 0.0, ""});
    EXPECT_EQ(estimates(group)[0].centers[1], rows == 3 ? 0.5 : 0.0) << rows << " rows";
  }
}

TEST(Drift, TheErrorIsThatOfAMedianOfTheSpreadWithinVisits) {
  // Deviations from the centers of the visits, 2 and 10: 1 0 1, 3 0 3; their median is 1.
  const Group group = {
      {{0, 0, 1, ""}, {1, 0, 2, ""}, {2, 0, 3, ""}, {3, 1, 7, ""}, {4, 1, 10, ""}, {5, 1, 13, ""}}};
  const Estimate found = estimates(group)[0];
  EXPECT_DOUBLE_EQ(found.value, 5);
  EXPECT_EQ(found.centers, (std::vector<double>{2, 10}));
  EXPECT_NEAR(found.within, 1.2533 * 1.4826 * 1 / std::sqrt(6.0) * (1 + 2.0 / 6), 1e-12);
}

}  // namespace
}  // namespace stepladder

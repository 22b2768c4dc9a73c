// The sums of compressors with error feedback are as near to the exact ones as the bound of
// feedback.hpp allows.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "harness/verify/feedback.hpp"
#include "kernels/all_reduce/all_reduce.hpp"
#include "tests/verdict.hpp"

namespace stepladder {
namespace {

// Sends a share of input + residual, by default a quarter, and keeps the rest, on all ranks in one
// process.
class Quarter final : public all_reduce::Plan {
 public:
  Quarter(const all_reduce::Problem& p, const Resources&)
      : p_(p), residual_(static_cast<std::size_t>(p.ranks * p.count)) {
    calls = 0;
    sums.assign(static_cast<std::size_t>(p.count), 0.0);
  }
  void run(const all_reduce::Operands& o) override {
    ++calls;
    for (std::int64_t i = 0; i < p_.count; ++i) {
      float sum = 0;
      for (int r = 0; r < p_.ranks; ++r) {
        float& rest = residual_[static_cast<std::size_t>(r * p_.count + i)];
        const float v = (p_.gpus ? o.of_gpu[r].input : o.input)[i] + rest;
        sum += v * share;
        rest = v - v * share;
      }
      for (int r = 0; r < p_.ranks; ++r) (p_.gpus ? o.of_gpu[r].output : o.output)[i] = sum;
    }
    float* output = p_.gpus ? o.of_gpu[0].output : o.output;
    if (spoil) spoil(output);
    for (std::int64_t i = 0; i < p_.count; ++i)
      sums[static_cast<std::size_t>(i)] += double{output[i]};
  }
  static inline float share = 0.25F;
  static inline std::function<void(float*)> spoil{};
  static inline int calls = 0;
  static inline std::vector<double> sums{};

 private:
  all_reduce::Problem p_;
  std::vector<float> residual_;
};

double norm(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

// The bound of feedback.hpp after the calls that its rules ask for.
struct FeedbackRules {
  int calls = 0;
  double bound = 0;
  FeedbackRules(const RepeatedReference& reference, double contraction, bool again, int ranks) {
    const double q = std::sqrt(1 - contraction);
    const auto count = static_cast<double>(reference.expected.size());
    const double all = 4 * norm(reference.expected);
    double ranks_part = 0, sum_part = 0, rounding = 0;
    for (bool enough = false; !enough;) {
      const double sent = ranks_part + (calls < 4 ? reference.summand_norms : 0);
      sum_part = again ? q * (sum_part + sent) : 0;
      ranks_part = q * sent;
      rounding += (ranks + 8) * std::pow(2.0, -24) * (sent + sum_part);
      ++calls;
      const auto below = [&](double limit) {
        return ranks_part + sum_part <= std::max(limit, rounding);
      };
      enough = calls >= 4 &&
               (below(all / std::sqrt(count) / 8) || (calls >= 8 && calls * count >= 0x1p21 &&
                                                      (calls * count >= 0x1p27 || below(all / 2))));
    }
    bound = ranks_part + sum_part + rounding;
  }
};

struct Tried {
  Verdict verdict;
  RepeatedReference reference;
  FeedbackRules rules;
};
Tried verify_quarter(const all_reduce::Problem& problem, double contraction, int compressions = 1) {
  using all_reduce::AllReduce;
  Variant variant = unregistered<AllReduce>("quarter", make_plan<AllReduce, Quarter>);
  VariantInfo info = *variant.info;
  info.contraction = contraction;
  info.compressions = compressions;
  variant.info = variant.entry.info = &info;
  const std::unique_ptr<Case> owned = make_case<AllReduce>(problem, "test", "test");
  owned->allocate(1, nullptr);
  owned->fill(Tier::accuracy, 5);
  std::unique_ptr<Runner> plan;
  const Verdict found = verify(*owned, variant, {1, nullptr}, plan);
  const RepeatedReference reference = owned->repeated_reference();
  return {found, reference, FeedbackRules(reference, contraction, compressions > 1, problem.ranks)};
}

constexpr double quarter = 1 - 0.75 * 0.75;  // its contraction
constexpr auto sum = all_reduce::Operation::sum;

// What the outputs lack, after all calls.
std::vector<double> lacking(const RepeatedReference& reference) {
  std::vector<double> error = Quarter::sums;
  for (std::size_t i = 0; i < error.size(); ++i) error[i] -= 4 * reference.expected[i];
  return error;
}

TEST(VerifierFeedback, TheSumOfTheResultsIsAsNearAsItsResidualsAllow) {
  struct Row {
    all_reduce::Problem problem;
    double contraction;
    int compressions;
  };
  for (const Row& row : {Row{{sum, 37, 1}, quarter, 1}, Row{{sum, 37, 3, true}, quarter, 1},
                         Row{{sum, 500, 2, true}, quarter, 2}, Row{{sum, 1 << 18, 1}, quarter, 1},
                         Row{{sum, 1 << 18, 1}, 0.05, 2}, Row{{sum, 1 << 21, 1}, 0.05, 1}}) {
    const auto [found, reference, rules] =
        verify_quarter(row.problem, row.contraction, row.compressions);
    EXPECT_EQ(found.outcome, Outcome::passed) << found.reason;
    EXPECT_EQ(Quarter::calls, rules.calls) << row.problem.count;
    EXPECT_NEAR(found.error_ratio / (norm(lacking(reference)) / rules.bound), 1, 1e-9)
        << row.problem.count;
  }
}

// Nothing is lost, so that the bound is small at once.
TEST(VerifierFeedback, FourCallsAreMadeWithTheInputsHoweverGoodTheCompressorIs) {
  Quarter::share = 1;
  const auto [found, reference, rules] = verify_quarter({sum, 37, 1}, 0.9999999);
  Quarter::share = 0.25F;
  EXPECT_EQ(found.outcome, Outcome::passed) << found.reason;
  EXPECT_EQ(Quarter::calls, 4);
  EXPECT_EQ(rules.calls, 4);
}

// The residual of the first values is not that of the next.
TEST(VerifierFeedback, OtherValuesHaveAPlanOfTheirOwn) {
  using all_reduce::AllReduce;
  Variant variant = unregistered<AllReduce>("quarter", make_plan<AllReduce, Quarter>);
  VariantInfo info = *variant.info;
  info.contraction = quarter;
  variant.info = variant.entry.info = &info;
  const std::unique_ptr<Case> owned = make_case<AllReduce>({sum, 37, 1}, "test", "test");
  owned->allocate(1, nullptr);
  std::unique_ptr<Runner> plan;
  for (const int seed : {1, 2}) {
    owned->fill(Tier::accuracy, static_cast<std::uint64_t>(seed));
    EXPECT_EQ(verify(*owned, variant, {1, nullptr}, plan).outcome, Outcome::passed);
    const FeedbackRules rules(owned->repeated_reference(), quarter, false, 1);
    EXPECT_EQ(Quarter::calls, rules.calls) << "of a plan made for this filling";
  }
}

class FeedbackFault : public testing::Test {
 protected:
  ~FeedbackFault() override { Quarter::spoil = nullptr; }
};
using VerifierFeedbackFault = FeedbackFault;

// In one call one element is lost, and another is wrong by a little less.
TEST_F(VerifierFeedbackFault, TheReasonNamesTheDistanceAndTheWorstElement) {
  Quarter::spoil = [](float* output) {
    if (Quarter::calls != 2) return;
    output[20] += 1.5F;
    output[30] -= 2;
    output[36] += 1;
  };
  const auto [found, reference, rules] = verify_quarter({sum, 37, 1}, quarter);
  EXPECT_EQ(found.outcome, Outcome::failed);
  EXPECT_EQ(
      found.reason,
      fmt::format("the outputs of 4 calls with the inputs and {} with zeros sum to a vector at "
                  "distance {:.4g} from 4 times the result, expected within {:.4g}; element 30 "
                  "is {:.9g}, expected {:.9g}",
                  rules.calls - 4, norm(lacking(reference)), rules.bound, Quarter::sums[30],
                  4 * reference.expected[30]));
}

TEST_F(VerifierFeedbackFault, AnElementThatIsNoNumberIsTheWorst) {
  Quarter::spoil = [](float* output) {
    if (Quarter::calls == 3) output[5] = std::numeric_limits<float>::quiet_NaN();
    if (Quarter::calls == 4) output[7] += 9;
  };
  const Verdict found = verify_quarter({sum, 37, 1}, quarter).verdict;
  EXPECT_EQ(found.outcome, Outcome::failed);
  EXPECT_TRUE(says(found.reason, {"at distance nan from 4 times the result", "element 5 is nan"}));
}

// Of any call, also of those with zeros, whatever later calls do.
TEST_F(VerifierFeedbackFault, AWriteOutOfBoundsInOneCallIsFound) {
  for (const int call : {2, 6}) {
    Quarter::spoil = [call](float* output) {
      static float guard;
      if (Quarter::calls == call) guard = std::exchange(output[37], 0.0F);
      if (Quarter::calls == call + 1) output[37] = guard;
    };
    const Verdict found = verify_quarter({sum, 37, 1}, quarter).verdict;
    EXPECT_EQ(found.outcome, Outcome::failed);
    EXPECT_TRUE(says(found.reason, {"written out of bounds, 0 bytes past its end"}));
  }
}

// An error as large as a typical element of the sum is found in short vectors.
TEST_F(VerifierFeedbackFault, AnElementThatIsLostIsFound) {
  Quarter::spoil = [](float* output) { output[11] = 0; };
  EXPECT_EQ(verify_quarter({sum, 37, 1}, quarter).verdict.outcome, Outcome::failed);
}

}  // namespace
}  // namespace stepladder

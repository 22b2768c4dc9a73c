// What the verifier believes: bounds, error ratios, parts, replicas and blocks, by hand. The case
// has operands and expected values that each test chooses.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "harness/adapters/typed_case.hpp"
#include "harness/verify/verify.hpp"
#include "kernels/matmul/matmul.hpp"
#include "kernels/sgd_update/sgd_update.hpp"
#include "tests/verdict.hpp"

namespace stepladder {
namespace {

using sgd_update::Operands;
using sgd_update::Problem;
using sgd_update::SgdUpdate;

// What the case of a test has. The operands of SgdUpdate stand for any: weights and gradient are
// used.
struct Script {
  std::vector<OperandInfo> operands{};
  std::vector<std::vector<float>> content{};  // of weights and gradient
  std::vector<Expected> expected{};
  std::function<void(const Operands&)> run = [](const Operands&) {};
  bool exact = false;
  int ranks = 1;                       // with more, the operands are distributed
  std::vector<OperandBlock> blocks{};  // of this rank
  std::vector<std::int64_t> drawn{};   // the first random number of each fill and expect
  int plans = 0, preparations = 0, runs = 0;
};
Script script;

struct ScriptAdapter {
  using Primitive = SgdUpdate;
  using Problem = sgd_update::Problem;
  static std::vector<OperandInfo> operands(const Problem&) { return script.operands; }
  static Operands bind(const Problem&, const std::vector<void*>& at) {
    Operands all{};
    all.weights = static_cast<float*>(at[0]);
    all.gradient = static_cast<float*>(at[1]);
    all.state1 = static_cast<float*>(at.size() > 2 ? at[2] : nullptr);
    return all;
  }
  static std::vector<const void*> pointers(const Problem&, const Operands& o) {
    return {o.weights, o.gradient, o.state1};
  }
  static void fill(const Problem&, Tier, Random& random, Contents& contents) {
    script.drawn.push_back(random.integer(0, std::int64_t{1} << 40U));
    for (std::size_t i = 0; i < script.content.size(); ++i)
      std::ranges::copy(script.content[i], floats(contents, i));
  }
  static void expect(const Problem&, Tier, Random random, Contents&,
                     std::vector<Expected>& expected) {
    script.drawn.push_back(random.integer(0, std::int64_t{1} << 40U));
    expected = script.expected;
  }
  static bool has_exact_tier(const Problem&) { return script.exact; }
  static std::vector<OperandBlock> blocks(const Problem&, const VariantInfo&) {
    return script.blocks;
  }
};

class Scripted final : public sgd_update::Plan {
 public:
  Scripted(const Problem&, const Resources&) { ++script.plans; }
  void prepare(const Operands&) override { ++script.preparations; }
  std::string remark() const override { return "as the script says"; }
  void run(const Operands& o) override {
    ++script.runs;
    script.run(o);
  }
};

class VerifierTest : public testing::Test {
 protected:
  // The weights are a result of these values and bounds, and the gradient is an input.
  VerifierTest() { script = {}; }
  void expect(std::vector<double> value, std::vector<float> bound, Role role = Role::output) {
    const auto count = static_cast<std::int64_t>(value.size());
    script.operands = {{"weights", count, role}, {"gradient", 2, Role::input}};
    script.content = {std::vector<float>(value.size(), 100.0F), {5, 6}};
    script.expected = {{.value = std::move(value), .bound = std::move(bound)}, {}};
  }
  void returns(std::vector<float> values) {
    script.run = [values](const Operands& o) { std::ranges::copy(values, o.weights); };
  }
  std::unique_ptr<TypedCase<ScriptAdapter>> make(std::size_t copies = 1) {
    ProblemInfo of_case;
    of_case.primitive = "sgd_update";
    of_case.ranks = script.ranks;
    auto made = std::make_unique<TypedCase<ScriptAdapter>>(Problem{}, of_case);
    made->allocate(copies, nullptr);
    made->fill(Tier::accuracy, 1);
    made->reset_all();
    return made;
  }
  Verdict verdict() {
    std::unique_ptr<Runner> plan;
    return verify(*make(), variant_, {1, nullptr}, plan);
  }
  Verdict verdict(std::vector<float> values) {
    returns(std::move(values));
    return verdict();
  }
  // Of the results of a run that returns these values.
  std::uint64_t hash(std::vector<float> values) {
    returns(std::move(values));
    const auto problem = make();
    problem->plan(variant_, {1, nullptr})->run(0);
    return problem->result_hash(*variant_.info, 0);
  }
  VariantInfo& info() {
    variant_.info = &info_;
    return info_;
  }
  VariantInfo info_{.name = "scripted", .technique = Technique::serial, .adds = "a script"};
  Variant variant_ = unregistered<SgdUpdate>("scripted", make_plan<SgdUpdate, Scripted>);
};
using Verifier = VerifierTest;

// --- one element ---------------------------------------------------------------------------------

TEST_F(Verifier, TheErrorRatioIsTheLargestErrorOverItsBound) {
  expect({1, 1, 1, 1}, {1, 2, 4, 0});
  returns({1.5, 0.5, 4, 1});
  const Verdict found = verdict();
  EXPECT_EQ(found.outcome, Outcome::passed) << found.reason;
  EXPECT_DOUBLE_EQ(found.error_ratio, 0.75);
  EXPECT_EQ(found.relative_error, 0);
  EXPECT_GT(found.seconds, 0);
  EXPECT_LT(found.seconds, 1);
}

TEST_F(Verifier, AnErrorAsLargeAsItsBoundPassesAndAnyLargerOneFails) {
  expect({0, 0}, {0.25F, 0.5F});
  EXPECT_EQ(verdict({-0.25F, 0.5F}).outcome, Outcome::passed);
  EXPECT_EQ(verdict().error_ratio, 1);
  EXPECT_EQ(verdict({-0.25F, std::nextafter(0.5F, 1.0F)}).outcome, Outcome::failed);
  EXPECT_EQ(verdict({std::nextafter(-0.25F, -1.0F), 0.5F}).outcome, Outcome::failed);
}

TEST_F(Verifier, TheReasonNamesTheFirstWrongElementAndHowManyThereAre) {
  expect({1, 2, 3}, {0, 0.5F, 0});
  EXPECT_EQ(verdict({1, 2.75F, 3}).reason, "weights[1] is 2.75; expected 2 within 0.5");
  EXPECT_EQ(verdict({1, 2.75F, 4}).reason,
            "weights[1] is 2.75; expected 2 within 0.5 (2 of 3 elements wrong)");
  EXPECT_EQ(verdict({0, 2, 3}).reason, "weights[0] is 0; expected 1");
  EXPECT_TRUE(says(verdict({1, 2}).reason, {"weights[2] is ", "nan; expected 3"}));
}

TEST_F(Verifier, ADeclaredFactorAndRoundedOperandsWidenTheBound) {
  expect({0, 0}, {1, 2});
  script.expected[0].unit = 0.25;
  info().bound_factor = 2;
  info().operand_error = 0.5;
  // 2 + 0.5 / 0.25 = 4 times the bound
  EXPECT_EQ(verdict({4, -6}).outcome, Outcome::passed);
  EXPECT_DOUBLE_EQ(verdict().error_ratio, 1);
  EXPECT_EQ(verdict({4.001F, 0}).outcome, Outcome::failed);
  script.expected[0].unit = 0;  // no sum of products: operands are not rounded
  EXPECT_DOUBLE_EQ(verdict({2, 4}).error_ratio, 1);
  EXPECT_EQ(verdict({2.001F, 0}).outcome, Outcome::failed);
}

TEST_F(Verifier, QuantizedOperandsWidenTheBoundByAShareOfTheLargestSum) {
  expect({0, 0}, {1, 2});
  script.expected[0].largest_sum = 8;
  info().quantization_error = 0.25;
  // 1 + 0.25 · 8 and 2 + 0.25 · 8
  EXPECT_EQ(verdict({3, -4}).outcome, Outcome::passed);
  EXPECT_DOUBLE_EQ(verdict().error_ratio, 1);
  EXPECT_EQ(verdict({3.001F, 0}).outcome, Outcome::failed);
  script.expected[0].largest_sum = 0;  // the exact tier
  EXPECT_EQ(verdict({1.001F, 0}).outcome, Outcome::failed);
}

TEST_F(Verifier, ANormwiseBoundIsThatOfTheLargestMagnitudeForEveryElement) {
  expect({0, 0, 0}, {1, 4, 2});
  script.expected[0].unit = 0.5;  // magnitudes 2, 8 and 4
  info().bound_factor = 3;
  info().normwise = true;
  const auto bound = static_cast<float>(3 * 8 * 0x1p-24);
  EXPECT_EQ(verdict({bound, 0, -bound / 2}).outcome, Outcome::passed) << verdict().reason;
  EXPECT_DOUBLE_EQ(verdict().error_ratio, 1);
  EXPECT_EQ(verdict({0, 0, std::nextafter(bound, 1.0F)}).outcome, Outcome::failed);
  script.expected[0].unit = 0;  // not a sum: no error at all
  EXPECT_EQ(verdict({0, 0, 1e-30F}).outcome, Outcome::failed);
}

TEST_F(Verifier, OfAChangeTheAmountAddedIsCompared) {
  expect({0.5, -1}, {0.25F, 0}, Role::in_out);  // the content is 100
  script.expected[0].change = true;
  EXPECT_EQ(verdict({100.25F, 99}).outcome, Outcome::passed) << verdict().reason;
  EXPECT_EQ(verdict().error_ratio, 1);
  EXPECT_EQ(verdict({0.5F, -1}).outcome, Outcome::failed);
}

TEST_F(Verifier, PositionsAreBytes) {
  expect({0, 3, 255}, {0, 0, 0});
  script.operands[0].element = 1;
  script.content = {};
  const auto put = [](unsigned char last) {
    script.run = [last](const Operands& o) {
      const unsigned char values[] = {0, 3, last};
      std::memcpy(o.weights, values, 3);
    };
  };
  put(255);
  script.content = {{}, {5, 6}};
  EXPECT_EQ(verdict().outcome, Outcome::passed) << verdict().reason;
  put(254);
  EXPECT_EQ(verdict().reason, "weights[2] is 254; expected 255");
}

// --- parts ---------------------------------------------------------------------------------------

TEST_F(Verifier, APartOfItsOwnChoiceMustBeLargeEnoughAndRight) {
  expect({1, 2, 3, 4, 5, 6}, {0.5F, 0.5F, 0.5F, 0.5F, 0.5F, 0.5F}, Role::in_out);
  script.expected[0].least_updated = 3;
  EXPECT_EQ(verdict({1, 2.25F, 3}).outcome, Outcome::passed) << verdict().reason;
  EXPECT_DOUBLE_EQ(verdict().error_ratio, 0.5);
  EXPECT_EQ(verdict({1, 2}).reason, "weights was updated in 2 of 6 elements; expected 3 or more");
  EXPECT_EQ(verdict({1, 2, 3, 7}).reason, "weights[3] is 7; expected 4 within 0.5");
  script.expected[0].least_updated = 0;
  EXPECT_EQ(verdict({}).outcome, Outcome::passed);
}

TEST_F(Verifier, AnElementThatWasLeftAsItWasHasNoErrorRatio) {
  expect({100.25, 1}, {0.5F, 0.5F}, Role::in_out);  // the first is right by chance
  script.expected[0].least_updated = 1;
  EXPECT_EQ(verdict({100, 1.125F}).outcome, Outcome::passed) << verdict().reason;
  EXPECT_DOUBLE_EQ(verdict().error_ratio, 0.25);
}

// --- operands ------------------------------------------------------------------------------------

TEST_F(Verifier, WritesOutOfBoundsAndChangedInputsAreNamed) {
  expect({1}, {0});
  script.run = [](const Operands& o) {
    o.weights[0] = 1;
    const_cast<float*>(o.gradient)[1] = 7;
  };
  EXPECT_EQ(verdict().reason, "input gradient was changed");
  script.run = [](const Operands& o) { o.weights[0] = o.weights[1] = 1; };
  EXPECT_EQ(verdict().reason, "weights was written out of bounds, 0 bytes past its end");
}

TEST_F(Verifier, OperandsThatAreUsedAreReadOrWritten) {
  expect({1}, {0});
  script.operands.push_back({"state1", 1000, Role::unused});
  script.operands[1].role = Role::in_out;
  float weights[1] = {}, gradient[2] = {};
  Operands operands{};
  operands.weights = weights;
  operands.gradient = gradient;
  auto all = accesses_of<ScriptAdapter>(Problem{}, operands);
  script.operands[1].role = Role::input;
  all.push_back(accesses_of<ScriptAdapter>(Problem{}, operands).at(1));
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(static_cast<const void*>(all[0].from), weights);
  EXPECT_EQ(static_cast<const void*>(all[1].from), gradient);
  EXPECT_EQ(all[0].bytes, 4U);
  EXPECT_EQ(all[1].bytes, 8U);
  EXPECT_TRUE(all[0].writes);
  EXPECT_TRUE(all[1].writes);
  EXPECT_FALSE(all[2].writes);
}

// The rank has the last two columns of the weights, [2, 3], and the second element of the gradient.
TEST_F(Verifier, OfDistributedOperandsTheBlocksAreComparedWithTheirPartsOfTheWhole) {
  expect({10, 11, 12, 13, 14, 15}, {0, 1, 2, 0, 4, 8});
  script.ranks = 2;
  script.blocks = {{.first = 1, .rows = 2, .columns = 2, .stride = 3},
                   {.first = 1, .rows = 1, .columns = 1, .stride = 2}};
  EXPECT_EQ(verdict({11.5F, 12, 16, 15}).outcome, Outcome::passed) << verdict().reason;
  EXPECT_DOUBLE_EQ(verdict().error_ratio, 0.5);
  EXPECT_EQ(verdict({11, 12, 14, 23.5F}).reason, "weights[3] is 23.5; expected 15 within 8");
  EXPECT_EQ(verdict({11, 12, 14, 15, 16}).reason,
            "weights was written out of bounds, 0 bytes past its end");
  float gradient = 0;
  script.run = [&](const Operands& o) { gradient = o.gradient[0]; };
  verdict();
  EXPECT_EQ(gradient, 6);
  script.run = [](const Operands& o) { const_cast<float*>(o.gradient)[0] = 7; };
  EXPECT_EQ(verdict().reason.substr(0, 7), "weights");  // NaN still

  // The bound of rounded operands: 1 + 0.5 / 0.25 = 3 times that of fp32.
  script.expected[0].unit = 0.25;
  info().operand_error = 0.5;
  EXPECT_EQ(verdict({14, 18, 26, 39}).outcome, Outcome::passed) << verdict().reason;
  EXPECT_EQ(verdict({14, 18.5F, 26, 39}).outcome, Outcome::failed);
}

TEST_F(Verifier, OfAChangedBlockTheAmountAddedIsCompared) {
  expect({1, 2, 3, 4}, {0, 0, 0, 0}, Role::in_out);
  script.content[0] = {10, 20, 30, 40};
  script.expected[0].change = true;
  script.ranks = 2;
  script.blocks = {{.first = 2, .rows = 1, .columns = 2, .stride = 4},
                   {.first = 0, .rows = 1, .columns = 2, .stride = 2}};
  EXPECT_EQ(verdict({33, 44}).outcome, Outcome::passed) << verdict().reason;
  EXPECT_EQ(verdict({3, 4}).outcome, Outcome::failed);
}

TEST_F(Verifier, EachRankHasOtherBlocksSoThatNoHashIsShared) {
  expect({1, 2}, {9, 9});
  script.ranks = 2;
  script.blocks = {{.first = 0, .rows = 1, .columns = 1, .stride = 2},
                   {.first = 0, .rows = 1, .columns = 2, .stride = 2}};
  EXPECT_EQ(hash({1}), hash({2}));
}

TEST_F(Verifier, AReplicaMustHaveTheSameBits) {
  expect({1}, {0.5F});
  script.operands.push_back({"copy", 1, Role::output, 4, 0, 0});
  script.expected.push_back(script.expected[0]);
  const auto put = [](float copy) {
    script.run = [copy](const Operands& o) {
      o.weights[0] = 1;
      o.state1[0] = copy;
    };
  };
  put(1);
  EXPECT_EQ(verdict().outcome, Outcome::passed);
  put(1.25F);
  EXPECT_EQ(verdict().reason, "copy differs from weights");
}

TEST_F(Verifier, TheRelativeErrorOfCompressedMessagesIsOfTheNorms) {
  expect({3, 4}, {1, 1});
  returns({3.3F, 4.4F});
  info().encoded_share = 0.5;
  EXPECT_NEAR(verdict().relative_error, 0.1, 1e-6);
  EXPECT_NEAR(verdict().error_ratio, 0.4, 1e-6);
  expect({0, 0}, {1, 1});
  EXPECT_EQ(verdict().relative_error, 0);
}

TEST_F(Verifier, MemoryIsThatOfUsedOperandsCopiesAndReferences) {
  expect(std::vector<double>(10), std::vector<float>(10));
  script.operands.push_back({"state1", 1000, Role::unused});
  script.operands.push_back({"index", 7, Role::input, 1});
  const TypedCase<ScriptAdapter> problem(Problem{}, {});
  EXPECT_EQ(problem.operand_bytes(), 40 + 8 + 7);
  EXPECT_EQ(problem.memory_needed(3), (40 + 8 + 7) * 5 + 20 * 10);
}

TEST_F(Verifier, EveryCopyIsFilledPoisonedAndCheckedByItself) {
  expect({1, 1}, {0, 0});
  const auto problem = make(3);
  EXPECT_EQ(problem->copies(), 3U);
  const auto plan = problem->plan(variant_, {1, nullptr});
  std::vector<std::pair<float, float>> seen;  // weights and gradient
  script.run = [&](const Operands& o) {
    seen.emplace_back(o.weights[1], o.gradient[1]);
    o.weights[0] = o.weights[1] = static_cast<float>(seen.size());
  };
  for (const std::size_t copy : {0, 1, 2}) plan->run(copy);
  for (const auto& [weight, gradient] : seen) {
    EXPECT_TRUE(std::isnan(weight));
    EXPECT_EQ(gradient, 6);
  }
  EXPECT_TRUE(problem->check(*variant_.info, 0).passed);
  EXPECT_EQ(problem->check(*variant_.info, 1).what,
            "weights[0] is 2; expected 1 (2 of 2 elements wrong)");
  EXPECT_FALSE(problem->check(*variant_.info, 2).passed);

  problem->reset_to_zero();  // copy 0 alone
  seen.clear();
  for (const std::size_t copy : {0, 1}) plan->run(copy);
  EXPECT_TRUE(std::isnan(seen[0].first));
  EXPECT_EQ(seen[0].second, 0);
  EXPECT_EQ(seen[1].first, 2);
  EXPECT_EQ(seen[1].second, 6);
  EXPECT_TRUE(problem->check(*variant_.info, 0).passed);  // its inputs are zeros, as they were

  problem->reset();  // copy 0 alone
  seen.clear();
  for (const std::size_t copy : {0, 1}) plan->run(copy);
  EXPECT_TRUE(std::isnan(seen[0].first));
  EXPECT_EQ(seen[0].second, 6);
  EXPECT_EQ(seen[1].first, 2);  // as the run above left it
}

TEST_F(Verifier, WhatTheAdapterDoesNotFillIsNan) {
  expect({1, 1}, {0, 0}, Role::in_out);
  script.content = {};
  std::vector<float> seen;
  script.run = [&](const Operands& o) {
    seen = {o.weights[0], o.weights[1], o.gradient[0], o.gradient[1]};
  };
  verdict();
  ASSERT_EQ(seen.size(), 4U);
  for (const float value : seen) EXPECT_TRUE(std::isnan(value));
}

// Values depend on the seed and the names of the problem, and the results on the same ones as the
// inputs.
TEST_F(Verifier, EveryProblemAndSeedHasValuesOfItsOwn) {
  expect({1}, {0});
  const auto drawn = [](std::uint64_t seed, const char* primitive, const char* direction,
                        const char* shape) {
    ProblemInfo of_case;
    of_case.primitive = primitive;
    of_case.direction = direction;
    of_case.shape = shape;
    script.drawn.clear();
    TypedCase<ScriptAdapter>(Problem{}, of_case).fill(Tier::accuracy, seed);
    EXPECT_EQ(script.drawn.size(), 2U);
    EXPECT_EQ(script.drawn.front(), script.drawn.back());
    return script.drawn.front();
  };
  const std::int64_t first = drawn(1, "a", "b", "c");
  EXPECT_EQ(drawn(1, "a", "b", "c"), first);
  EXPECT_NE(drawn(2, "a", "b", "c"), first);
  EXPECT_NE(drawn(1, "x", "b", "c"), first);
  EXPECT_NE(drawn(1, "a", "x", "c"), first);
  EXPECT_NE(drawn(1, "a", "b", "x"), first);
}

TEST_F(Verifier, AllocatedAgainACaseHasTheNewNumberOfCopies) {
  expect({1}, {0});
  returns({1});
  const auto problem = make(3);
  problem->allocate(2, nullptr);
  EXPECT_EQ(problem->copies(), 2U);
  problem->reset_all();
  const auto plan = problem->plan(variant_, {1, nullptr});
  EXPECT_EQ(plan->remark(), "as the script says");
  for (const std::size_t copy : {0, 1}) {
    plan->run(copy);
    EXPECT_TRUE(problem->check(*variant_.info, copy).passed);
  }
}

TEST_F(Verifier, TheHashIsOfTheResultsThatAllRanksShare) {
  expect({1, 1}, {9, 9});
  EXPECT_EQ(hash({1, 2}), hash({1, 2}));
  EXPECT_NE(hash({1, 2}), hash({2, 1}));
  EXPECT_NE(hash({1, 2}), hash({1, 3}));
  script.expected[0].least_updated = 1;
  EXPECT_EQ(hash({1, 2}), hash({1, 3}));
}

TEST_F(Verifier, SumsOfResultsLeaveReplicasOut) {
  expect({1, 2}, {9, 9});
  script.expected[0].summand_norms = 3;
  script.operands.push_back({"copy", 2, Role::output, 4, 0, 0});
  script.expected.push_back(script.expected[0]);
  const auto problem = make();
  const RepeatedReference reference = problem->repeated_reference();
  EXPECT_EQ(reference.expected, (std::vector<double>{1, 2}));
  EXPECT_EQ(reference.summand_norms, 3);
  returns({4, 5});
  problem->plan(variant_, {1, nullptr})->run(0);
  std::vector<double> sums = {10, 20};
  problem->add_results(*variant_.info, 0, sums);
  EXPECT_EQ(sums, (std::vector<double>{14, 25}));
}

// --- verify --------------------------------------------------------------------------------------

TEST_F(Verifier, APlanThatPassedIsKeptAndNotToldOfOtherOperands) {
  expect({1}, {0});
  returns({1});
  const auto problem = make();
  std::unique_ptr<Runner> plan;
  EXPECT_EQ(verify(*problem, variant_, {1, nullptr}, plan).outcome, Outcome::passed);
  ASSERT_NE(plan, nullptr);
  EXPECT_EQ(verify(*problem, variant_, {1, nullptr}, plan).outcome, Outcome::passed);
  ASSERT_NE(plan, nullptr);
  EXPECT_EQ(script.plans, 1);
  EXPECT_EQ(script.preparations, 1);
  EXPECT_EQ(script.runs, 2);
}

TEST_F(Verifier, AFailureOfALaterRunIsNamedAsOne) {
  expect({1}, {0});
  const auto problem = make();
  std::unique_ptr<Runner> plan;
  returns({1});
  verify(*problem, variant_, {1, nullptr}, plan);
  returns({2});
  EXPECT_EQ(verify(*problem, variant_, {1, nullptr}, plan).reason,
            "a later run of the plan: weights[0] is 2; expected 1");
  EXPECT_EQ(plan, nullptr);
  EXPECT_EQ(verify(*problem, variant_, {1, nullptr}, plan).reason, "weights[0] is 2; expected 1");
}

class Limited final : public sgd_update::Plan {
 public:
  Limited(const Problem&, const Resources& resources) {
    if (resources.threads == 2) throw NotHere("no such device");
    if (resources.threads == 3) throw Unsupported("not three");
    if (resources.threads == 4) throw std::runtime_error("no memory");
  }
  void run(const Operands&) override {}
};

TEST_F(Verifier, WhatIsUnavailableHereIsToldFromWhatIsNotSupported) {
  expect({1}, {0});
  const Variant limited = unregistered<SgdUpdate>("limited", make_plan<SgdUpdate, Limited>);
  const auto with = [&](int threads) {
    std::unique_ptr<Runner> plan;
    const Verdict found = verify(*make(), limited, {threads, nullptr}, plan);
    EXPECT_EQ(plan, nullptr);
    return found;
  };
  EXPECT_EQ(with(2).outcome, Outcome::unavailable);
  EXPECT_EQ(with(2).reason, "no such device");
  EXPECT_TRUE(with(2).runs_nowhere);
  EXPECT_EQ(with(3).outcome, Outcome::unavailable);
  EXPECT_EQ(with(3).reason, "not three");
  EXPECT_FALSE(with(3).runs_nowhere);
  EXPECT_EQ(with(4).outcome, Outcome::failed);
  EXPECT_EQ(with(4).reason, "threw: no memory");
  EXPECT_FALSE(with(4).runs_nowhere);
  variant_.why_unavailable = "not built";
  EXPECT_EQ(verdict().reason, "not built");
  EXPECT_TRUE(verdict().runs_nowhere);
  EXPECT_EQ(script.plans, 0);
}

std::vector<std::pair<bool, std::uint64_t>> exact_and_seed(const std::vector<Filling>& all) {
  std::vector<std::pair<bool, std::uint64_t>> found;
  for (const Filling& filling : all) found.emplace_back(filling.tier == Tier::exact, filling.seed);
  return found;
}

TEST_F(Verifier, EveryVariantRunsOnTwoFillings) {
  using List = std::vector<std::pair<bool, std::uint64_t>>;
  expect({1}, {0});
  script.exact = true;
  Variant coarse = variant_;
  info().bound_factor = 2;
  std::swap(coarse.info, variant_.info);
  EXPECT_EQ(exact_and_seed(fillings(*make(), {variant_}, 7)), (List{{true, 7}, {false, 7}}));
  EXPECT_EQ(exact_and_seed(fillings(*make(), {variant_, coarse}, 7)),
            (List{{true, 7}, {false, 8}, {false, 7}}));
  script.exact = false;
  EXPECT_EQ(exact_and_seed(fillings(*make(), {variant_}, 7)), (List{{false, 8}, {false, 7}}));
}

TEST_F(Verifier, TheExactTierIsForFp32AndForRoundedOperands) {
  expect({1}, {0});
  script.exact = true;
  const auto problem = make();
  const auto takes = [&](auto change) {
    VariantInfo changed = info_;
    change(changed);
    return takes_exact_tier(*problem, changed);
  };
  EXPECT_TRUE(takes([](VariantInfo&) {}));
  for (const Precision precision : {Precision::fp16, Precision::bf16})  // of messages
    EXPECT_FALSE(takes([precision](VariantInfo& v) {
      v.precision = precision;
      v.encoded_share = 0.5;
    }));
  EXPECT_TRUE(takes([](VariantInfo& v) { v.encoded_share = 0.85; }));  // without loss
  EXPECT_TRUE(takes([](VariantInfo& v) { v.precision = Precision::tf32; }));
  EXPECT_FALSE(takes([](VariantInfo& v) { v.bound_factor = 1.5; }));
  EXPECT_TRUE(takes([](VariantInfo& v) {
    v.bound_factor = 1.5;
    v.operand_error = 0.1;
  }));
  EXPECT_TRUE(takes([](VariantInfo& v) {
    v.operand_error = 0.1;
    v.precision = Precision::bf16;
  }));
  EXPECT_FALSE(takes([](VariantInfo& v) { v.contraction = 0.5; }));
  script.exact = false;
  EXPECT_FALSE(takes_exact_tier(*make(), info_));
}

TEST(VerifierTimes, AreOfTheSlowerOfMemoryAndArithmetic) {
  // 3 · 40,000 bytes at 20 MB/s; 2,000,000 operations at 100 MFLOP/s
  EXPECT_DOUBLE_EQ(expected_seconds(*make_case<matmul::Matmul>({100, 100, 100}, "", "")), 0.02);
  EXPECT_DOUBLE_EQ(expected_seconds(*make_case<matmul::Matmul>({1, 1000, 1000}, "", "")),
                   4.0 * (1000 + 1000000 + 1000) / 2e7);
}

TEST(VerifierDevice, WithoutADeviceNoneIsLost) {
  if (device() != nullptr) GTEST_SKIP() << "this machine has a device";
  EXPECT_FALSE(device_is_lost());
}

}  // namespace
}  // namespace stepladder

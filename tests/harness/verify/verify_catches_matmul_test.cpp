// Every fault that a matmul rung may have is found, and its reason names the operand.
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "harness/adapters/primitives.hpp"
#include "kernels/matmul/matmul.hpp"
#include "tests/verdict.hpp"

namespace stepladder::matmul {
namespace {

constexpr Problem problems[] = {{5, 7, 9},
                                {8, 16, 4},
                                {13, 1, 30},
                                {6, 10, 3, true, false},
                                {4, 9, 7, false, true},
                                {3, 5, 8, true, true}};

float a_at(const Problem& p, const Operands& o, std::int64_t i, std::int64_t l) {
  return p.transpose_a ? o.a[l * p.m + i] : o.a[i * p.k + l];
}
float b_at(const Problem& p, const Operands& o, std::int64_t l, std::int64_t j) {
  return p.transpose_b ? o.b[j * p.k + l] : o.b[l * p.n + j];
}
float dot(const Problem& p, const Operands& o, std::int64_t i, std::int64_t j) {
  float sum = 0;
  for (std::int64_t l = 0; l < p.k; ++l) sum += a_at(p, o, i, l) * b_at(p, o, l, j);
  return sum;
}
void multiply(const Problem& p, const Operands& o) {
  for (std::int64_t i = 0; i < p.m; ++i)
    for (std::int64_t j = 0; j < p.n; ++j) o.c[i * p.n + j] = dot(p, o, i, j);
}

// Computes whole vectors of four only: the last columns keep their content.
void wrong_tail(const Problem& p, const Operands& o) {
  for (std::int64_t i = 0; i < p.m; ++i)
    for (std::int64_t j = 0; j + 4 <= p.n; j += 4)
      for (std::int64_t lane = j; lane < j + 4; ++lane) o.c[i * p.n + lane] = dot(p, o, i, lane);
}

// Computes the tail as a whole vector and overwrites the start of the next row, which is computed
// later. Only the elements past the last row are wrong.
void vector_past_the_end(const Problem& p, const Operands& o) {
  multiply(p, o);
  for (std::int64_t j = p.m * p.n; j % 4 != 0; ++j) o.c[j] = 0;
}

void transposed_operand(const Problem& p, const Operands& o) {
  Problem swapped = p;
  swapped.transpose_b = !p.transpose_b;
  multiply(swapped, o);
}

void transposed_result(const Problem& p, const Operands& o) {
  for (std::int64_t i = 0; i < p.m; ++i)
    for (std::int64_t j = 0; j < p.n; ++j) o.c[j * p.m + i] = dot(p, o, i, j);
}

void out_of_bounds_before(const Problem& p, const Operands& o) {
  multiply(p, o);
  o.c[-1] = 0;
}

// Reads the last element of a sum from beyond the operand.
void reads_out_of_bounds(const Problem& p, const Operands& o) {
  multiply(p, o);
  o.c[p.m * p.n - 1] += o.a[p.m * p.k] * o.b[p.k * p.n - 1];
}

void changes_input(const Problem& p, const Operands& o) {
  multiply(p, o);
  const_cast<float*>(o.b)[p.k * p.n - 1] += 1;
}

void returns_nan(const Problem& p, const Operands& o) {
  multiply(p, o);
  o.c[p.m * p.n / 2] = std::numeric_limits<float>::quiet_NaN();
}

void throws(const Problem&, const Operands&) { throw std::runtime_error("no such tile"); }

void accumulates(const Problem& p, const Operands& o) {
  for (std::int64_t i = 0; i < p.m; ++i)
    for (std::int64_t j = 0; j < p.n; ++j) o.c[i * p.n + j] += dot(p, o, i, j);
}

void writes_nothing(const Problem&, const Operands&) {}

// Two threads add their halves of the sum to one element, and the second overwrites the first.
void lost_partial_sum(const Problem& p, const Operands& o) {
  multiply(p, o);
  float half = 0;
  for (std::int64_t l = p.k / 2; l < p.k; ++l)
    half += a_at(p, o, p.m - 1, l) * b_at(p, o, l, p.n - 1);
  o.c[p.m * p.n - 1] = half;
}

// Keeps 11 of the 24 bits of each operand: exact for small integers, too coarse for fractions.
void half_precision(const Problem& p, const Operands& o) {
  const auto rounded = [](float value) {
    return static_cast<float>(static_cast<std::int64_t>(value * 2048)) / 2048;
  };
  for (std::int64_t i = 0; i < p.m; ++i)
    for (std::int64_t j = 0; j < p.n; ++j) {
      float sum = 0;
      for (std::int64_t l = 0; l < p.k; ++l)
        sum += rounded(a_at(p, o, i, l)) * rounded(b_at(p, o, l, j));
      o.c[i * p.n + j] = sum;
    }
}

std::span<float> product(const Problem& p, const Operands& o) {
  return {o.c, static_cast<std::size_t>(p.m * p.n)};
}

// Packs B in its first run and misses later changes of the weights.
class StalePacking final : public Plan {
 public:
  StalePacking(const Problem& problem, const Resources&) : problem_(problem) {}
  void run(const Operands& o) override {
    if (packed_.empty()) packed_.assign(o.b, o.b + problem_.k * problem_.n);
    multiply(problem_, {o.a, packed_.data(), o.c});
  }

 private:
  Problem problem_;
  std::vector<float> packed_;
};

// Clears its workspace when the plan is made, not in each run.
class DirtyWorkspace final : public Plan {
 public:
  DirtyWorkspace(const Problem& problem, const Resources&)
      : problem_(problem), sums_(static_cast<std::size_t>(problem.m * problem.n)) {}
  void run(const Operands& o) override {
    multiply(problem_, o);
    for (std::size_t i = 0; i < sums_.size(); ++i) o.c[i] = sums_[i] += o.c[i];
  }

 private:
  Problem problem_;
  std::vector<float> sums_;
};

class Limited final : public Plan {
 public:
  Limited(const Problem& problem, const Resources&) {
    throw Unsupported("takes m of whole tiles, not " + std::to_string(problem.m));
  }
  void run(const Operands&) override {}
};

class ThrowsWhenPlanned final : public Plan {
 public:
  ThrowsWhenPlanned(const Problem&, const Resources&) { throw std::bad_alloc(); }
  void run(const Operands&) override {}
};

struct FaultOfEveryShape {
  const char* name;
  Factory<Matmul> factory;
  const char* reason;
};

const FaultOfEveryShape faults[] = {
    {"broken_transposed_result", plan_of<transposed_result>, "c["},
    {"broken_before", plan_of<out_of_bounds_before>,
     "c was written out of bounds, 1 bytes before its start"},
    {"broken_read", plan_of<reads_out_of_bounds>, "c["},
    {"broken_input", plan_of<changes_input>, "input b was changed"},
    {"broken_nan", plan_of<returns_nan>, "is nan; expected"},
    {"broken_throws", plan_of<throws>, "threw: no such tile"},
    {"broken_throws_when_planned", make_plan<Matmul, ThrowsWhenPlanned>, "threw: std::bad_alloc"},
    {"broken_accumulates", plan_of<accumulates>, "c[0, 0] is "},
    {"broken_unwritten", plan_of<writes_nothing>, "c[0, 0] is "},
    {"broken_partial_sum", plan_of<lost_partial_sum>, "c["},
    {"broken_half_precision", plan_of<half_precision>, " within "},
    {"broken_stale_result", make_plan<Matmul, StaleResult<Matmul, multiply, product>>,
     "a later run of the plan: c["},
    {"broken_stale_packing", make_plan<Matmul, StalePacking>, "a later run of the plan: c["},
    {"broken_dirty_workspace", make_plan<Matmul, DirtyWorkspace>, "a later run of the plan: c["},
};

TEST(VerifyCatchesMatmul, FaultsThatEveryShapeShows) {
  for (const FaultOfEveryShape& fault : faults)
    for (const Problem& problem : problems) {
      if (fault.factory == plan_of<transposed_result> && (problem.m == 1 || problem.n == 1))
        continue;
      EXPECT_TRUE(is_caught<Matmul>(problem, unregistered<Matmul>(fault.name, fault.factory),
                                    fault.reason));
    }
}

// Rounds the operands to so many bits: 8 are bf16, 11 are fp16 and TF32.
template <int bits>
void narrow_operands(const Problem& p, const Operands& o) {
  const auto rounded = [](float value) {
    int exponent = 0;
    const float significand = std::frexp(value, &exponent);
    return std::ldexp(std::nearbyint(std::ldexp(significand, bits)), exponent - bits);
  };
  std::vector<float> a(o.a, o.a + p.m * p.k), b(o.b, o.b + p.k * p.n);
  for (std::vector<float>* values : {&a, &b})
    for (float& value : *values) value = rounded(value);
  multiply(p, {a.data(), b.data(), o.c});
}

// The errors of random operands cancel in long sums, and the bound of these grows.
TEST(VerifyCatchesMatmul, NarrowOperandsAlsoInLongSums) {
  for (const std::int64_t k : {1, 64, 512, 2000}) {
    EXPECT_TRUE(is_caught<Matmul>(
        {3, 5, k}, unregistered<Matmul>("tf32", plan_of<narrow_operands<11>>), " within "))
        << k;
    EXPECT_TRUE(is_caught<Matmul>(
        {3, 5, 8 * k}, unregistered<Matmul>("bf16", plan_of<narrow_operands<8>>), " within "))
        << k;
  }
}

TEST(VerifyCatchesMatmul, WrongTails) {
  const Variant variant = unregistered<Matmul>("broken_tail", plan_of<wrong_tail>);
  EXPECT_TRUE(is_caught<Matmul>({5, 7, 9}, variant, "c[0, 4] is "));
  EXPECT_TRUE(is_caught<Matmul>({5, 7, 9}, variant, "(15 of 35 elements wrong)"));
  EXPECT_TRUE(is_caught<Matmul>({2, 3, 4}, variant, "(6 of 6 elements wrong)"));
}

TEST(VerifyCatchesMatmul, VectorsPastTheEnd) {
  EXPECT_TRUE(is_caught<Matmul>({5, 7, 9},
                                unregistered<Matmul>("broken_past", plan_of<vector_past_the_end>),
                                "c was written out of bounds, "));
}

TEST(VerifyCatchesMatmul, AnOperandReadAlongTheOtherAxis) {
  const Variant variant =
      unregistered<Matmul>("broken_transposed_operand", plan_of<transposed_operand>);
  for (const Problem& problem : problems)
    if (problem.n > 1) {
      EXPECT_TRUE(is_caught<Matmul>(problem, variant, "c["));
    }
}

void multiply_triangle(const Problem& p, const Operands& o) {
  for (std::int64_t i = 0; i < p.m; ++i)
    for (std::int64_t j = 0; j <= i; ++j) o.c[i * p.n + j] = dot(p, o, i, j);
}
// Row 1 ends with a whole vector of four.
void writes_above_the_diagonal(const Problem& p, const Operands& o) {
  multiply_triangle(p, o);
  for (std::int64_t j = 2; j < 4; ++j) o.c[p.n + j] = dot(p, o, 1, j);
}
void leaves_out_the_diagonal(const Problem& p, const Operands& o) {
  for (std::int64_t i = 1; i < p.m; ++i)
    for (std::int64_t j = 0; j < i; ++j) o.c[i * p.n + j] = dot(p, o, i, j);
}
void upper_triangle(const Problem& p, const Operands& o) {
  for (std::int64_t i = 0; i < p.m; ++i)
    for (std::int64_t j = i; j < p.n; ++j) o.c[i * p.n + j] = dot(p, o, i, j);
}

TEST(VerifyCatchesMatmul, WrongPartsOfATriangle) {
  for (const bool transpose_a : {false, true})
    for (const bool transpose_b : {false, true}) {
      const Problem p{9, 9, 5, transpose_a, transpose_b, Epilogue::none, true};
      EXPECT_TRUE(first_rungs_pass<Matmul>(p));
      EXPECT_TRUE(passes<Matmul>(p, plan_of<multiply_triangle>));
      for (const auto& fault :
           {Fault<Matmul>{"broken_above", p, plan_of<writes_above_the_diagonal>, "c[1, 2] is "},
            {"broken_whole", p, plan_of<multiply>, "c[0, 1] is "},
            {"broken_below", p, plan_of<leaves_out_the_diagonal>, "c[0, 0] is "},
            {"broken_upper", p, plan_of<upper_triangle>, "c[0, 1] is "}})
        EXPECT_TRUE(fault.is_caught());
    }
}

TEST(Verify, ARungWithoutTrianglesSaysSo) {
  const Problem p{9, 9, 5, false, true, Epilogue::none, true};
  int with = 0, without = 0;
  for (const Variant& variant : primitive(Matmul::name).variants()) {
    if (variant.info->place != Place::cpu || !variant.why_unavailable.empty() ||
        variant.info->over_ranks)
      continue;
    ++(variant.info->triangle ? with : without);
    if (variant.info->triangle) {
      EXPECT_TRUE(passes<Matmul>(p, variant));
    } else {
      EXPECT_EQ(verdict_of<Matmul>(p, variant).reason, "computes whole matrices, not a triangle")
          << variant.name;
    }
  }
  EXPECT_GE(with, 6);
  EXPECT_GT(without, 0);
}

TEST(VerifyCatchesMatmul, NothingInCorrectKernels) {
  for (const Problem& problem : problems) {
    EXPECT_TRUE(first_rungs_pass<Matmul>(problem));
    EXPECT_TRUE(passes<Matmul>(problem, plan_of<multiply>));
  }
}

TEST(Verify, NoCpuRungSupportsTheGradientOfARelu) {
  Problem problem = problems[0];
  problem.epilogue = Epilogue::relu_gradient;
  int with_epilogue = 0, without = 0;
  for (const Variant& variant : primitive(Matmul::name).variants()) {
    if (variant.info->place != Place::cpu || !variant.why_unavailable.empty()) continue;
    ++(variant.info->epilogue ? with_epilogue : without);
    const Verdict verdict = verdict_of<Matmul>(problem, variant);
    EXPECT_EQ(verdict.outcome, Outcome::unavailable) << variant.name;
    EXPECT_EQ(verdict.reason, variant.info->epilogue
                                  ? "supports bias and ReLU, but not the gradient of a ReLU"
                                  : "supports no epilogue (bias, ReLU)")
        << variant.name;
  }
  EXPECT_GT(with_epilogue, 0);
  EXPECT_GT(without, 0);
}

TEST(Verify, AProblemOutsideTheDomainIsUnavailableWithTheReason) {
  const Verdict verdict =
      verdict_of<Matmul>({5, 7, 9}, unregistered<Matmul>("limited", make_plan<Matmul, Limited>));
  EXPECT_EQ(verdict.outcome, Outcome::unavailable);
  EXPECT_EQ(verdict.reason, "takes m of whole tiles, not 5");
}

TEST(Verify, AVariantThatWasNotBuiltIsUnavailableWithTheReason) {
  Variant variant = unregistered<Matmul>("missing", nullptr);
  variant.why_unavailable = "built without its library";
  const Verdict verdict = verdict_of<Matmul>({5, 7, 9}, variant);
  EXPECT_EQ(verdict.outcome, Outcome::unavailable);
  EXPECT_EQ(verdict.reason, "built without its library");
}

// half_precision has an error of about 2^-11 in each operand; a declared bound of 2^13 roundings
// allows it.
TEST(Verify, ADeclaredBoundIsCheckedAndSkipsTheExactTier) {
  const std::unique_ptr<Case> problem = make_case<Matmul>({5, 7, 9}, "test", "test");
  const Variant variant = unregistered<Matmul>("coarse", plan_of<half_precision>, 8192);
  EXPECT_FALSE(takes_exact_tier(*problem, *variant.info));
  const Verdict verdict = verdict_of(*problem, variant);
  EXPECT_EQ(verdict.outcome, Outcome::passed);
  EXPECT_GT(verdict.error_ratio, 1.0 / 8192);
  EXPECT_LE(verdict.error_ratio, 1.0);
}

}  // namespace
}  // namespace stepladder::matmul

// Faults of an all-reduce on one rank, where the sum is a copy, and between the GPUs of one
// process, here with operands in host memory. tests/mpi has the faults between processes.
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "kernels/all_reduce/all_reduce.hpp"
#include "tests/verdict.hpp"

namespace stepladder::all_reduce {
namespace {

constexpr Problem problem{.operation = Operation::sum, .count = 37, .ranks = 1};

void copy(const Problem& p, const Operands& o) { std::copy_n(o.input, p.count, o.output); }
void wrong_tail(const Problem& p, const Operands& o) {
  std::copy_n(o.input, p.count / 8 * 8, o.output);
}
void rotated(const Problem& p, const Operands& o) {
  std::rotate_copy(o.input, o.input + 1, o.input + p.count, o.output);
}
void past_the_end(const Problem& p, const Operands& o) {
  std::copy_n(o.input, p.count + 1, o.output);
}
void before_the_start(const Problem& p, const Operands& o) {
  copy(p, o);
  o.output[-1] = 0;
}
void changes_input(const Problem& p, const Operands& o) {
  copy(p, o);
  const_cast<float*>(o.input)[5] += 1;
}
void returns_nan(const Problem& p, const Operands& o) {
  copy(p, o);
  o.output[5] = std::numeric_limits<float>::quiet_NaN();
}
void throws(const Problem&, const Operands&) { throw std::runtime_error("no message came"); }
void accumulates(const Problem& p, const Operands& o) {
  for (std::int64_t i = 0; i < p.count; ++i) o.output[i] += o.input[i];
}

std::span<float> output(const Problem& p, const Operands& o) {
  return {o.output, static_cast<std::size_t>(p.count)};
}

const Fault<AllReduce> faults[] = {
    {"broken_tail", problem, plan_of<wrong_tail>, "output[32] is "},
    {"broken_index", problem, plan_of<rotated>, "output["},
    {"broken_past", problem, plan_of<past_the_end>, "output was written out of bounds, "},
    {"broken_before", problem, plan_of<before_the_start>, "output was written out of bounds, "},
    {"broken_input", problem, plan_of<changes_input>, "input input was changed"},
    {"broken_nan", problem, plan_of<returns_nan>, "output[5] is nan; expected"},
    {"broken_throws", problem, plan_of<throws>, "threw: no message came"},
    {"broken_accumulates", problem, plan_of<accumulates>, "output[0] is "},
    {"broken_stale", problem, make_plan<AllReduce, StaleResult<AllReduce, copy, output>>,
     "a later run of the plan: output["},
};

TEST(VerifyCatchesAllReduce, Faults) {
  for (const auto& fault : faults) EXPECT_TRUE(fault.is_caught());
}

TEST(VerifyCatchesAllReduce, NothingInACorrectKernel) {
  EXPECT_TRUE(passes<AllReduce>(problem, plan_of<copy>));
}

constexpr Problem on_gpus{.operation = Operation::mean, .count = 37, .ranks = 3, .gpus = true};

void mean_of_gpus(const Problem& p, const Operands& o) {
  for (std::int64_t i = 0; i < p.count; ++i) {
    float sum = 0;
    for (int rank = 0; rank < p.ranks; ++rank) sum += o.of_gpu[rank].input[i];
    for (int rank = 0; rank < p.ranks; ++rank)
      o.of_gpu[rank].output[i] = sum / static_cast<float>(p.ranks);
  }
}
void other_bits_on_one(const Problem& p, const Operands& o) {
  mean_of_gpus(p, o);
  o.of_gpu[1].output[5] = std::nextafter(o.of_gpu[1].output[5], 2.0F);
}
void leaves_one_out(const Problem& p, const Operands& o) {
  Problem fewer = p;
  fewer.ranks = 2;
  mean_of_gpus(fewer, o);
}

TEST(VerifyCatchesAllReduce, FaultsBetweenGpus) {
  constexpr double allowing_the_last_bit = 2;
  EXPECT_TRUE(is_caught<AllReduce>(
      on_gpus,
      unregistered<AllReduce>("other_bits", plan_of<other_bits_on_one>, allowing_the_last_bit),
      "output of GPU 1 differs from output of GPU 0"));
  EXPECT_TRUE(is_caught<AllReduce>(
      on_gpus, unregistered<AllReduce>("leaves_one_out", plan_of<leaves_one_out>), "of GPU "));
  EXPECT_TRUE(passes<AllReduce>(on_gpus, plan_of<mean_of_gpus>));
}

// --- Error feedback ------------------------------------------------------------------------------

// C(v) = v / 64. Each rank sends a 64th of input + residual and keeps the rest.
constexpr double part = 1.0 / 64;
constexpr double contraction = 1 - (1 - part) * (1 - part);

enum class Fault64 {
  none,
  no_feedback,
  zeros,
  loses_tail,
  loses_of_one_rank,
  forgets_slowly,
  stale,
  rare_nan,
  rare_other_bits,
  rare_input,
  rare_past
};

template <Fault64 fault>
class Send64th final : public Plan {
 public:
  Send64th(const Problem& p, const Resources&)
      : p_(p), residual_(static_cast<std::size_t>(p.ranks), zeros()), first_(zeros()) {}

  void run(const Operands& o) override {
    const bool rare = ++calls_ == 50;
    std::vector<float> sum = zeros();
    for (std::size_t r = 0; r < residual_.size(); ++r)
      for (std::size_t i = 0; i < sum.size(); ++i) {
        float& rest = residual_[r][i];
        const float v = input(o, r)[i] + rest;
        const auto sent = static_cast<float>(part * double{v});
        sum[i] += sent;
        rest = v - sent;
        if (fault == Fault64::no_feedback) rest = 0;
        if (fault == Fault64::loses_tail && i + 3 >= sum.size()) rest = sum[i] = 0;
        if (fault == Fault64::loses_of_one_rank && r == 1 && calls_ == 3) rest = 0;
        if (fault == Fault64::forgets_slowly) rest *= 0.999F;
      }
    if (p_.operation == Operation::mean)
      for (float& s : sum) s /= static_cast<float>(p_.ranks);
    if (fault == Fault64::zeros) sum = zeros();
    if (calls_ == 1) first_ = sum;
    if (fault == Fault64::stale) sum = first_;
    if (fault == Fault64::rare_nan && rare) sum[3] = std::numeric_limits<float>::quiet_NaN();
    for (std::size_t r = 0; r < residual_.size(); ++r) std::ranges::copy(sum, output(o, r));
    if (fault == Fault64::rare_other_bits && rare)
      output(o, 1)[5] = std::nextafter(output(o, 1)[5], 2.0F);
    if (fault == Fault64::rare_input && rare) const_cast<float*>(input(o, 0))[5] += 1;
    if (fault == Fault64::rare_past && rare) output(o, 0)[p_.count] = 0;
  }

 private:
  std::vector<float> zeros() const {
    return std::vector<float>(static_cast<std::size_t>(p_.count));
  }
  const float* input(const Operands& o, std::size_t r) const {
    return p_.gpus ? o.of_gpu[r].input : o.input;
  }
  float* output(const Operands& o, std::size_t r) const {
    return p_.gpus ? o.of_gpu[r].output : o.output;
  }

  Problem p_;
  int calls_ = 0;
  std::vector<std::vector<float>> residual_;  // [rank][count]
  std::vector<float> first_;
};

template <Fault64 fault>
Variant with_feedback(double declared = contraction) {
  static VariantInfo info;
  const Variant plain = unregistered<AllReduce>("feedback", make_plan<AllReduce, Send64th<fault>>);
  Variant variant = plain;
  info = *plain.info;
  info.contraction = declared;
  variant.info = variant.entry.info = &info;
  return variant;
}

TEST(VerifyCatchesAllReduce, FaultsOfErrorFeedback) {
  const std::string sum = "sum to a vector at distance";
  EXPECT_TRUE(is_caught<AllReduce>(on_gpus, with_feedback<Fault64::no_feedback>(), sum));
  EXPECT_TRUE(is_caught<AllReduce>(on_gpus, with_feedback<Fault64::zeros>(), sum));
  EXPECT_TRUE(is_caught<AllReduce>(on_gpus, with_feedback<Fault64::loses_tail>(), "; element 3"));
  EXPECT_TRUE(is_caught<AllReduce>(on_gpus, with_feedback<Fault64::loses_of_one_rank>(), sum));
  EXPECT_TRUE(is_caught<AllReduce>(on_gpus, with_feedback<Fault64::forgets_slowly>(), sum));
  EXPECT_TRUE(is_caught<AllReduce>(on_gpus, with_feedback<Fault64::stale>(), sum));
  EXPECT_TRUE(is_caught<AllReduce>(on_gpus, with_feedback<Fault64::rare_nan>(), "element 3 is"));
  EXPECT_TRUE(is_caught<AllReduce>(on_gpus, with_feedback<Fault64::rare_other_bits>(),
                                   "output of GPU 1 differs from output of GPU 0"));
  EXPECT_TRUE(is_caught<AllReduce>(on_gpus, with_feedback<Fault64::rare_input>(),
                                   "input input of GPU 0 was changed"));
  EXPECT_TRUE(is_caught<AllReduce>(on_gpus, with_feedback<Fault64::rare_past>(),
                                   "was written out of bounds"));
  // It contracts less than it claims.
  EXPECT_TRUE(is_caught<AllReduce>(on_gpus, with_feedback<Fault64::none>(2 * contraction), sum));
}

// It gets fewer calls. The bound is looser, but not so loose that zeros pass.
TEST(VerifyCatchesAllReduce, FaultsOfErrorFeedbackInALongVector) {
  const Problem long_one{.operation = Operation::sum, .count = 1 << 20, .ranks = 1};
  EXPECT_TRUE(is_caught<AllReduce>(long_one, with_feedback<Fault64::zeros>(), "sum to a vector"));
  EXPECT_TRUE(
      is_caught<AllReduce>(long_one, with_feedback<Fault64::no_feedback>(), "sum to a vector"));
}

TEST(VerifyCatchesAllReduce, NothingInCorrectErrorFeedback) {
  for (const Problem& p : {problem, on_gpus, Problem{.count = 0, .ranks = 1},
                           Problem{.operation = Operation::sum, .count = 5000, .ranks = 1}}) {
    const Verdict verdict = verdict_of<AllReduce>(p, with_feedback<Fault64::none>());
    EXPECT_EQ(verdict.outcome, Outcome::passed) << verdict.reason;
    EXPECT_LE(verdict.error_ratio, 1);
    EXPECT_GE(verdict.error_ratio, p.count > 0 ? 0.1 : 0) << "a bound so loose proves nothing";
  }
}

// Its single results are far from the sum.
TEST(VerifyCatchesAllReduce, ErrorFeedbackHasNoBoundForOneResult) {
  EXPECT_TRUE(is_caught<AllReduce>(
      problem, unregistered<AllReduce>("feedback", make_plan<AllReduce, Send64th<Fault64::none>>),
      "output[0] is "));
}

}  // namespace
}  // namespace stepladder::all_reduce

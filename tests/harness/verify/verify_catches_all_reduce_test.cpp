// Faults of an all-reduce on one rank, where the sum is a copy, and between the GPUs of one
// process, here with operands in host memory. tests/mpi has the faults between processes.
#include <algorithm>
#include <cmath>
#include <limits>
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

class Stale final : public Plan {
 public:
  Stale(const Problem&, const Resources&) {}
  void run(const Operands& o) override {
    if (kept_.empty()) kept_.assign(o.input, o.input + problem.count);
    std::copy(kept_.begin(), kept_.end(), o.output);
  }

 private:
  std::vector<float> kept_;
};

struct Fault {
  const char* name;
  Factory<AllReduce> factory;
  const char* reason;
};

const Fault faults[] = {
    {"broken_tail", plan_of<wrong_tail>, "output[32] is "},
    {"broken_index", plan_of<rotated>, "output["},
    {"broken_past", plan_of<past_the_end>, "output was written out of bounds, "},
    {"broken_before", plan_of<before_the_start>, "output was written out of bounds, "},
    {"broken_input", plan_of<changes_input>, "input input was changed"},
    {"broken_nan", plan_of<returns_nan>, "output[5] is nan; expected"},
    {"broken_throws", plan_of<throws>, "threw: no message came"},
    {"broken_accumulates", plan_of<accumulates>, "output[0] is "},
    {"broken_stale", make_plan<AllReduce, Stale>,
     "second run of the plan, on other values: output["},
};

TEST(VerifyCatchesAllReduce, Faults) {
  for (const Fault& fault : faults)
    EXPECT_TRUE(is_caught<AllReduce>(problem, unregistered<AllReduce>(fault.name, fault.factory),
                                     fault.reason));
}

TEST(VerifyCatchesAllReduce, NothingInACorrectKernel) {
  const std::unique_ptr<Case> owned = make_case<AllReduce>(problem, "test", "test");
  EXPECT_EQ(verdict_of(*owned, unregistered<AllReduce>("correct", plan_of<copy>)).outcome,
            Outcome::passed);
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
  const std::unique_ptr<Case> owned = make_case<AllReduce>(on_gpus, "test", "test");
  EXPECT_EQ(verdict_of(*owned, unregistered<AllReduce>("correct", plan_of<mean_of_gpus>)).outcome,
            Outcome::passed);
}

}  // namespace
}  // namespace stepladder::all_reduce

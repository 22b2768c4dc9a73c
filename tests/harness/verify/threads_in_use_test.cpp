// A rung that is given two threads computes on both, and one that is given one thread on the
// caller's alone. Results do not show it; CPU time does.
#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

#include "harness/adapters/primitives.hpp"
#include "harness/problem/suites.hpp"
#include "tests/verdict.hpp"

namespace stepladder {
namespace {

double cpu_seconds(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// CPU time of all other threads, relative to that of the caller, in some runs.
double share_of_others(Runner& runner) {
  // Idle threads of other plans may still poll; they sleep soon.
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const double all = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID);
  const double before = cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
  double own = 0;
  while (own < 0.01) {
    runner.run(0);
    own = cpu_seconds(CLOCK_THREAD_CPUTIME_ID) - before;
  }
  return (cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - all - own) / own;
}

// On a busy machine one measurement may be wrong.
template <class Condition>
bool holds_once(Runner& runner, const Condition& condition) {
  for (int attempt = 0; attempt < 5; ++attempt)
    if (condition(share_of_others(runner))) return true;
  return false;
}

void check(const PrimitiveType& type, Case& problem) {
  fill_one_copy(problem);
  for (const Variant& variant : type.variants()) {
    if (!variant.info->threaded || variant.info->place != Place::cpu ||
        variant.info->technique == Technique::vendor || !variant.why_unavailable.empty())
      continue;
    for (const int threads : {1, 2}) {
      std::unique_ptr<Runner> runner;
      try {
        runner = problem.plan(variant, {.threads = threads});
      } catch (const Unsupported&) {
        continue;
      }
      runner->prepare();
      runner->run(0);
      if (threads == 1)
        EXPECT_TRUE(holds_once(*runner, [](double share) { return share < 0.1; }))
            << variant.name << " " << problem.info().direction << " on one thread";
      else
        EXPECT_TRUE(holds_once(*runner, [](double share) { return share > 0.3; }))
            << variant.name << " " << problem.info().direction << " on two threads";
    }
  }
}

// The problems that `--shape` makes of the texts: where they name no direction, in all.
void check(const char* primitive_name, const std::vector<std::string>& shapes) {
  const PrimitiveType& type = primitive(primitive_name);
  for (const std::string& shape : shapes)
    for (const auto& problem : shape_problems(type, shape, 1)) check(type, *problem);
}

TEST(ThreadsInUse, Matmul) {
  check("matmul", {"256x256x256", "256x256x256 transpose_a=1", "256x256x256 transpose_b=1",
                   "256x256x256 transpose_a=1 transpose_b=1", "256x256x256 epilogue=bias_relu"});
}

TEST(ThreadsInUse, Convolution) {
  check("convolution", {"8x32x28x28x32x1x1", "8x32x28x28x32x3x3 pad_h=1 pad_w=1"});
}

TEST(ThreadsInUse, ConvolutionInOtherLayouts) {
  check("convolution", {"16x32x28x28x32x3x3 direction=forward layout=chwn",
                        "16x32x28x28x32x3x3 direction=forward layout=nchw16c"});
}

const std::vector<std::string> pools = {"16x32x56x56x2x2x2x2", "16x32x56x56x2x2x2x2 layout=chwn",
                                        "16x32x56x56x2x2x2x2 layout=nchw16c"};

TEST(ThreadsInUse, MaxPool) { check("max_pool", pools); }

TEST(ThreadsInUse, AveragePool) { check("average_pool", pools); }

TEST(ThreadsInUse, Reorder) {
  check("reorder", {"16x32x56x56 from=nchw to=chwn", "16x32x56x56 from=nchw to=bf16"});
}

TEST(ThreadsInUse, SgdUpdate) { check("sgd_update", {"1048576"}); }

TEST(ThreadsInUse, Layers) {
  check("layers", {"64x64x196 layer=bias", "64x64x196 layer=relu", "64x64x196 layer=tanh",
                   "64x64x196 layer=lrn"});
}

}  // namespace
}  // namespace stepladder

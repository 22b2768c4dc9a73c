// A rung that is given two threads computes on both, and one that is given one thread on the
// caller's alone. Results do not show it; CPU time does.
#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <thread>

#include "harness/adapters/primitives.hpp"
#include "kernels/average_pool/average_pool.hpp"
#include "kernels/convolution/convolution.hpp"
#include "kernels/layers/layers.hpp"
#include "kernels/matmul/matmul.hpp"
#include "kernels/max_pool/max_pool.hpp"
#include "kernels/reorder/reorder.hpp"
#include "kernels/sgd_update/sgd_update.hpp"
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

template <class Primitive>
void check(const PrimitiveType& type, const typename Primitive::Problem& problem) {
  const std::unique_ptr<Case> owned = make_case<Primitive>(problem, "test", "test");
  owned->allocate(1, nullptr);
  owned->fill(Tier::accuracy, 1);
  owned->reset();
  for (const Variant& variant : type.variants()) {
    if (!variant.info->threaded || variant.info->place != Place::cpu ||
        variant.info->technique == Technique::vendor || !variant.why_unavailable.empty())
      continue;
    for (const int threads : {1, 2}) {
      std::unique_ptr<Runner> runner;
      try {
        runner = owned->plan(variant, {.threads = threads});
      } catch (const Unsupported&) {
        continue;
      }
      runner->prepare();
      runner->run(0);
      if (threads == 1)
        EXPECT_TRUE(holds_once(*runner, [](double share) { return share < 0.1; }))
            << variant.name << " " << owned->info().direction << " on one thread";
      else
        EXPECT_TRUE(holds_once(*runner, [](double share) { return share > 0.3; }))
            << variant.name << " " << owned->info().direction << " on two threads";
    }
  }
}

TEST(ThreadsInUse, Matmul) {
  for (const bool transpose_a : {false, true})
    for (const bool transpose_b : {false, true})
      check<matmul::Matmul>(matmul_type(), {256, 256, 256, transpose_a, transpose_b});
  check<matmul::Matmul>(matmul_type(),
                        {.m = 256, .n = 256, .k = 256, .epilogue = matmul::Epilogue::bias_relu});
}

TEST(ThreadsInUse, Convolution) {
  using convolution::Direction;
  for (const std::int64_t kernel : {1, 3})
    for (const Direction direction :
         {Direction::forward, Direction::backward_data, Direction::backward_weights})
      check<convolution::Convolution>(convolution_type(), {.direction = direction,
                                                           .batch = 8,
                                                           .in_channels = 32,
                                                           .height = 28,
                                                           .width = 28,
                                                           .out_channels = 32,
                                                           .kernel_h = kernel,
                                                           .kernel_w = kernel,
                                                           .pad_h = kernel / 2,
                                                           .pad_w = kernel / 2});
}

TEST(ThreadsInUse, ConvolutionInOtherLayouts) {
  for (const Layout layout : {Layout::chwn, Layout::nchw16c})
    check<convolution::Convolution>(convolution_type(), {.batch = 16,
                                                         .in_channels = 32,
                                                         .height = 28,
                                                         .width = 28,
                                                         .out_channels = 32,
                                                         .kernel_h = 3,
                                                         .kernel_w = 3,
                                                         .layout = layout});
}

TEST(ThreadsInUse, MaxPool) {
  using max_pool::Direction;
  for (const Layout layout : {Layout::nchw, Layout::chwn, Layout::nchw16c})
    for (const Direction direction : {Direction::forward, Direction::backward})
      check<max_pool::MaxPool>(max_pool_type(), {.direction = direction,
                                                 .batch = 16,
                                                 .channels = 32,
                                                 .height = 56,
                                                 .width = 56,
                                                 .window_h = 2,
                                                 .window_w = 2,
                                                 .stride_h = 2,
                                                 .stride_w = 2,
                                                 .layout = layout});
}

TEST(ThreadsInUse, AveragePool) {
  using average_pool::Direction;
  for (const Layout layout : {Layout::nchw, Layout::chwn, Layout::nchw16c})
    for (const Direction direction : {Direction::forward, Direction::backward})
      check<average_pool::AveragePool>(average_pool_type(), {.direction = direction,
                                                             .batch = 16,
                                                             .channels = 32,
                                                             .height = 56,
                                                             .width = 56,
                                                             .window_h = 2,
                                                             .window_w = 2,
                                                             .stride_h = 2,
                                                             .stride_w = 2,
                                                             .layout = layout});
}

TEST(ThreadsInUse, Reorder) {
  check<reorder::Reorder>(reorder_type(), {16, 32, 56, 56, Layout::nchw, Layout::chwn});
  check<reorder::Reorder>(reorder_type(), {.batch = 16,
                                           .channels = 32,
                                           .height = 56,
                                           .width = 56,
                                           .to = Layout::nchw,
                                           .to_format = reorder::Format::bf16});
}

TEST(ThreadsInUse, SgdUpdate) {
  check<sgd_update::SgdUpdate>(sgd_update_type(), {.count = 1 << 20});
}

TEST(ThreadsInUse, Layers) {
  using layers::Layer;
  for (const Layer layer :
       {Layer::bias, Layer::relu, Layer::tanh, Layer::local_response_normalization})
    check<layers::Layers>(layers_type(),
                          {.layer = layer, .batch = 64, .channels = 64, .spatial = 196});
}

}  // namespace
}  // namespace stepladder

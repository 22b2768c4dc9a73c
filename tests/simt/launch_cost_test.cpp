// What a run of a plan leaves to its first run: attributes of kernels and tensor maps. Later runs
// launch kernels only, also when their operands alternate, as with --cold.
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "kernels/common/cuda/plan.hpp"
#include "kernels/common/cuda/tensor_map_cache.hpp"
#include "kernels/convolution/convolution.hpp"
#include "kernels/matmul/matmul.hpp"
#include "tests/simt/multiprocessor.hpp"

namespace stepladder {
namespace {

template <class Primitive>
std::unique_ptr<PlanOf<Primitive>> plan_of_rung(const std::string& rung,
                                                const typename Primitive::Problem& problem) {
  for (const detail::Entry& entry : detail::entries(Primitive::name))
    if (entry.info->place == Place::cuda && entry.info->name == rung)
      return plan_variant<Primitive>(entry, problem, {});
  throw std::runtime_error("no rung " + rung);
}

constexpr std::int64_t most_floats = 1 << 14;  // of an operand here

class Buffers {
 public:
  const float* operator[](std::size_t i) const {
    return static_cast<const float*>(memory_.at(i).get());
  }
  float* result() const { return static_cast<float*>(memory_[2].get()); }

 private:
  static DeviceMemory allocate() { return device_memory(most_floats * sizeof(float)); }
  std::array<DeviceMemory, 3> memory_{allocate(), allocate(), allocate()};
};

// Runs the plan on two sets of operands and expects that a second time costs launches alone.
template <class Run>
void expect_cheap_reruns(const Run& run, const std::string& rung) {
  const Buffers first, second;
  const auto both = [&] {
    run(first);
    run(second);
  };
  both();
  const simt::Calls before = simt::calls;
  both();
  device()->synchronize();
  EXPECT_GT(simt::calls.launches, before.launches) << rung;
  EXPECT_EQ(simt::calls.attributes, before.attributes) << rung;
  EXPECT_EQ(simt::calls.tensor_maps, before.tensor_maps) << rung;
  EXPECT_EQ(simt::calls.allocations, before.allocations) << rung;
}

TEST(LaunchCost, MatmulEncodesAndSetsNothingInLaterRuns) {
  for (const char* const rung :
       {"tf32_wgmma", "tf32x3_wgmma", "tf32_wgmma_cluster", "tf32_tensor_core", "tf32_split_k"})
    for (const bool transpose_b : {false, true}) {
      const auto plan = plan_of_rung<matmul::Matmul>(
          rung, {.m = 68, .n = 72, .k = 32, .transpose_b = transpose_b});
      expect_cheap_reruns(
          [&](const Buffers& buffers) {
            plan->run({.a = buffers[0], .b = buffers[1], .c = buffers.result()});
          },
          rung);
    }
}

TEST(LaunchCost, ConvolutionEncodesAndSetsNothingInLaterRuns) {
  for (const char* const rung : {"tf32_wgmma", "tf32x3_wgmma"}) {
    const auto plan = plan_of_rung<convolution::Convolution>(rung, {.batch = 1,
                                                                    .in_channels = 4,
                                                                    .height = 6,
                                                                    .width = 6,
                                                                    .out_channels = 8,
                                                                    .kernel_h = 3,
                                                                    .kernel_w = 3,
                                                                    .layout = Layout::nhwc});
    expect_cheap_reruns(
        [&](const Buffers& buffers) {
          plan->run({.x = const_cast<float*>(buffers[0]),
                     .w = const_cast<float*>(buffers[1]),
                     .y = buffers.result()});
        },
        rung);
  }
}

TEST(TensorMapCache, EncodesAgainOnlyWhatItHasReplaced) {
  TensorMapCache cache;
  std::size_t encoded = 0;
  const auto get = [&](const float* matrix) {
    return cache
        .get(matrix,
             [&] {
               ++encoded;
               return tensor_map(matrix, 1, 4, 4, 1, TmaRounding::none);
             })
        .matrix;
  };
  alignas(16) static float memory[100 * 4];
  for (int round = 0; round < 2; ++round)
    for (int i = 0; i < 64; ++i) EXPECT_EQ(get(memory + i * 4), memory + i * 4);
  EXPECT_EQ(encoded, 64U);
  for (int i = 64; i < 100; ++i) EXPECT_EQ(get(memory + i * 4), memory + i * 4);  // replaces 0 …
  EXPECT_EQ(encoded, 100U);
  EXPECT_EQ(get(memory + 63 * 4), memory + 63 * 4);
  EXPECT_EQ(encoded, 100U);
  EXPECT_EQ(get(memory), memory);
  EXPECT_EQ(encoded, 101U);
}

}  // namespace
}  // namespace stepladder

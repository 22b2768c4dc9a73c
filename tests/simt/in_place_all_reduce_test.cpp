// The GPU rungs of all_reduce work in place, as training steps use them, in any order of the
// streams.
#include <gtest/gtest.h>

#include <vector>

#include "harness/adapters/primitives.hpp"
#include "harness/problem/random.hpp"
#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/common/device.hpp"
#include "tests/simt/multiprocessor.hpp"
#include "tests/simt/streams.hpp"

namespace stepladder::all_reduce {
namespace {

// The vectors of all GPUs after the sum. Before it, every element on a GPU is its index + 1.
std::vector<std::vector<float>> sums_in_place(const Variant& variant, const Problem& p) {
  const std::size_t count = static_cast<std::size_t>(p.count), bytes = count * sizeof(float);
  const auto plan = plan_variant<AllReduce>(variant.entry, p, {});
  Operands operands{};
  std::vector<std::vector<float>> held;
  for (int gpu = 0; gpu < p.ranks; ++gpu) {
    held.emplace_back(count, static_cast<float>(gpu + 1));
    auto* values = static_cast<float*>(device(gpu)->allocate(bytes));
    device(gpu)->upload(values, held.back().data(), bytes);
    operands.of_gpu[static_cast<std::size_t>(gpu)] = {values, values};
  }
  plan->run(operands);
  device()->synchronize();
  for (int gpu = 0; gpu < p.ranks; ++gpu) {
    float* values = operands.of_gpu[static_cast<std::size_t>(gpu)].output;
    device(gpu)->download(held[static_cast<std::size_t>(gpu)].data(), values, bytes);
    device(gpu)->release(values);
  }
  return held;
}

TEST(InPlaceAllReduce, EveryGpuEndsWithTheSum) {
  const simt::DeferredStreams deferred;
  Random random(5);
  for (const Variant& variant : primitive(AllReduce::name).variants()) {
    if (variant.info->place != Place::cuda) continue;
    for (int round = 0; round < 20; ++round) {
      simt::seed_order(static_cast<unsigned long long>(round));
      const Problem p{.count = random.integer(1, 300),
                      .ranks = static_cast<int>(random.integer(2, device_count())),
                      .gpus = true};
      const auto sum = static_cast<float>(p.ranks * (p.ranks + 1) / 2);
      const std::vector<float> expected(static_cast<std::size_t>(p.count), sum);
      for (const std::vector<float>& held : sums_in_place(variant, p))
        ASSERT_EQ(held, expected) << variant.name << ", " << p.count << " on " << p.ranks;
    }
  }
}

}  // namespace
}  // namespace stepladder::all_reduce

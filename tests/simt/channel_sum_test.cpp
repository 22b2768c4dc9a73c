// The sum over all blocks of a channel, within the kernel that computes the summands.
#include "kernels/max_pool/cuda/channel_sum.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "harness/problem/random.hpp"
#include "tests/simt/multiprocessor.hpp"

namespace stepladder {
namespace {

using max_pool::ChannelSum, max_pool::ChannelSumMemory;

// value: [channels, blocks_per_channel, block_threads]
__global__ void sum_kernel(ChannelSum sums, const float* value, float* dbias) {
  sums.add(blockIdx.x / sums.blocks_per_channel, blockIdx.x % sums.blocks_per_channel,
           value[thread_index()], dbias);
}

TEST(ChannelSum, IsBitwiseReproducibleWhicheverBlockIsLast) {
  constexpr unsigned channels = 3;
  Random random(6);
  for (const unsigned blocks_per_channel : {1U, 2U, 35U}) {
    std::vector<float> value(channels * blocks_per_channel * block_threads);
    for (float& v : value) v = random.uniform(-1, 1);
    const ChannelSumMemory memory(channels, blocks_per_channel);
    std::vector<float> first;
    for (const unsigned order : {1U, 2U, 3U, 4U}) {
      simt::seed_order(order);
      std::vector<float> dbias(channels, NAN);
      launch(sum_kernel, {channels * blocks_per_channel, block_threads}, memory.sum(), value.data(),
             dbias.data());
      if (first.empty()) first = dbias;
      EXPECT_EQ(dbias, first) << blocks_per_channel << " blocks each, order " << order;
    }
    for (unsigned c = 0; c < channels; ++c) {
      double sum = 0, magnitude = 0;
      for (std::size_t i = 0; i < value.size() / channels; ++i) {
        const double v = value[c * (value.size() / channels) + i];
        sum += v, magnitude += std::abs(v);
      }
      EXPECT_NEAR(first[c], sum, 1e-6 * magnitude);
    }
  }
}

}  // namespace
}  // namespace stepladder

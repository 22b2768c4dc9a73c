// The bias gradient: a sum over all threads of a channel, at the end of the kernel that has the
// values. A separate kernel would read the gradient again and cost a launch. Every block writes its
// partial sum, and the last block of a channel adds them:
//
//     block (c, 0)   256 threads → partials[c, 0]
//     block (c, 1)   256 threads → partials[c, 1]     the last block:  Σ partials[c, …] → dbias[c]
//       …
//
// Only the count of finished blocks is atomic. The partials are added in index order, so every run
// gives the same bits. (Method: CUDA C++ Programming Guide, "Memory Fence Functions".) Only .cu
// files include this.
#pragma once

#include "kernels/common/cuda/plan.hpp"
#include "kernels/common/cuda/warp.hpp"

namespace stepladder::max_pool {

struct ChannelSum {
  float* partials;        // [channels, blocks_per_channel]
  unsigned* blocks_done;  // [channels], 0 between runs
  unsigned blocks_per_channel;

  // Called by all threads of a block; block: its index in the channel, < blocks_per_channel.
  __device__ void add(unsigned channel, unsigned block, float value, float* dbias) const {
    constexpr unsigned warps = block_threads / warp_threads;
    __shared__ float warp_sums[warps];
    const unsigned lane = threadIdx.x % warp_threads, warp = threadIdx.x / warp_threads;
    value = warp_sum(value);
    if (lane == 0) warp_sums[warp] = value;
    __syncthreads();
    if (warp > 0) return;

    value = warp_sum(lane < warps ? warp_sums[lane] : 0);
    float* const channel_partials = partials + std::int64_t{channel} * blocks_per_channel;
    int is_last = 0;
    if (lane == 0) {
      channel_partials[block] = value;
      __threadfence();  // the partial is visible before it is counted …
      const unsigned finished = atomicInc(blocks_done + channel, blocks_per_channel - 1);
      is_last = finished == blocks_per_channel - 1;  // the count is now 0 again
      if (is_last) __threadfence();                  // … and read afterwards
    }
    __syncwarp();
    if (!__shfl_sync(whole_warp, is_last, 0)) return;
    value = 0;
    for (unsigned i = lane; i < blocks_per_channel; i += warp_threads) value += channel_partials[i];
    value = warp_sum(value);
    if (lane == 0) dbias[channel] = value;
  }
};

// The memory that a plan allocates for it; nothing if channels is 0.
class ChannelSumMemory {
 public:
  ChannelSumMemory(std::int64_t channels, unsigned blocks_per_channel)
      : partials_(device_memory(channels * blocks_per_channel * sizeof(float))),
        blocks_done_(device_memory(channels * sizeof(unsigned))),
        blocks_per_channel_(blocks_per_channel) {
    if (channels > 0)
      STEPLADDER_CUDA_CHECK(
          cudaMemsetAsync(blocks_done_.get(), 0, channels * sizeof(unsigned), cuda_stream()));
  }
  ChannelSum sum() const {
    return {static_cast<float*>(partials_.get()), static_cast<unsigned*>(blocks_done_.get()),
            blocks_per_channel_};
  }

 private:
  DeviceMemory partials_, blocks_done_;
  unsigned blocks_per_channel_;
};

}  // namespace stepladder::max_pool

// One number for each channel, dbias, from what all threads have at the end of a kernel. A kernel of its
// own would read the gradient once more and cost a launch. Here every block leaves its sum in
// memory, and the last one of a channel adds these up:
//
//     block (c, 0)   256 threads → parts[c, 0]
//     block (c, 1)   256 threads → parts[c, 1]     whichever is done last:  Σ parts[c, …] → dbias[c]
//       …
//
// Atomic is only the count of the blocks that are done. The parts are added in their order, not in that
// of the blocks, so that every run gives the same bits. (Method: CUDA C++ Programming Guide, "Memory
// Fence Functions".) Only .cu files include this.
#pragma once

#include "kernels/common/cuda/plan.hpp"
#include "kernels/common/cuda/warp.hpp"

namespace stepladder::max_pool {

struct ChannelSum {
  float* parts;    // [channels, blocks_each]
  unsigned* done;  // [channels], 0 between runs
  unsigned blocks_each;

  // Called by all threads of a block, `block` < blocks_each of the channel.
  __device__ void add(unsigned channel, unsigned block, float value, float* dbias) const {
    constexpr unsigned warps = block_threads / warp_threads;
    __shared__ float of_warps[warps];
    const unsigned lane = threadIdx.x % warp_threads, warp = threadIdx.x / warp_threads;
    value = warp_sum(value);
    if (lane == 0) of_warps[warp] = value;
    __syncthreads();
    if (warp > 0) return;

    value = warp_sum(lane < warps ? of_warps[lane] : 0);
    float* const of_channel = parts + std::int64_t{channel} * blocks_each;
    int is_last = 0;
    if (lane == 0) {
      of_channel[block] = value;
      __threadfence();  // the part is there before it is counted …
      is_last = atomicInc(done + channel, blocks_each - 1) == blocks_each - 1;  // then 0 again
      if (is_last) __threadfence();  // … and read after
    }
    __syncwarp();
    if (!__shfl_sync(whole_warp, is_last, 0)) return;
    value = 0;
    for (unsigned i = lane; i < blocks_each; i += warp_threads) value += of_channel[i];
    value = warp_sum(value);
    if (lane == 0) dbias[channel] = value;
  }
};

// Its memory, of a plan; none for no channels.
class ChannelSumMemory {
 public:
  ChannelSumMemory(std::int64_t channels, unsigned blocks_each)
      : parts_(device_memory(channels * blocks_each * sizeof(float))),
        done_(device_memory(channels * sizeof(unsigned))),
        blocks_each_(blocks_each) {
    if (channels > 0)
      STEPLADDER_CUDA_CHECK(
          cudaMemsetAsync(done_.get(), 0, channels * sizeof(unsigned), cuda_stream()));
  }
  ChannelSum sum() const {
    return {static_cast<float*>(parts_.get()), static_cast<unsigned*>(done_.get()), blocks_each_};
  }

 private:
  DeviceMemory parts_, done_;
  unsigned blocks_each_;
};

}  // namespace stepladder::max_pool

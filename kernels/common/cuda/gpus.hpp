// Several GPUs in one process. Calls of the runtime refer to GPU 0, but for the life of a CurrentGpu. Only
// .cu files include this.
#pragma once

#include "kernels/common/cuda/check.hpp"

namespace stepladder {

// What runs on a GPU goes to its one stream; GPU 0's is cuda_stream().
cudaStream_t gpu_stream(int gpu);

class CurrentGpu {
 public:
  explicit CurrentGpu(int gpu) : gpu_(gpu) {
    if (gpu != 0) STEPLADDER_CUDA_CHECK(cudaSetDevice(gpu));
  }
  ~CurrentGpu() {
    if (gpu_ != 0) cudaSetDevice(0);
  }
  CurrentGpu(const CurrentGpu&) = delete;
  CurrentGpu& operator=(const CurrentGpu&) = delete;

 private:
  int gpu_;
};

}  // namespace stepladder

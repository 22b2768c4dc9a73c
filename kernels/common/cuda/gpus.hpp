// Several GPUs in one process. Runtime calls refer to GPU 0, except while a CurrentGpu exists. Only
// .cu files include this.
#pragma once

#include "kernels/common/cuda/check.hpp"

namespace stepladder {

// The stream that all work on this GPU goes to; cuda_stream() for GPU 0.
cudaStream_t gpu_stream(int gpu);

// Makes `gpu` current until the end of the scope.
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

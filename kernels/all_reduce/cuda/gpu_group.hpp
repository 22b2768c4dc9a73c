// The ranks of an all-reduce that are the GPUs of this process, each with a stream of its own. Only .cu
// files include this.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/common/cuda/gpus.hpp"
#include "kernels/common/cuda/plan.hpp"

namespace stepladder::all_reduce {

// What one stream has done so far, for others to wait for.
class StreamEvent {
 public:
  explicit StreamEvent(int gpu) : gpu_(gpu) {
    const CurrentGpu here(gpu_);
    STEPLADDER_CUDA_CHECK(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
  }
  StreamEvent(StreamEvent&& other) noexcept
      : gpu_(other.gpu_), event_(std::exchange(other.event_, nullptr)) {}
  ~StreamEvent() {
    if (event_ != nullptr) cudaEventDestroy(event_);
  }
  StreamEvent& operator=(StreamEvent&&) = delete;

  void record() const {
    const CurrentGpu here(gpu_);
    STEPLADDER_CUDA_CHECK(cudaEventRecord(event_, gpu_stream(gpu_)));
  }
  // What the GPU is told to do from here on comes after it.
  void hold(int gpu) const {
    const CurrentGpu here(gpu);
    STEPLADDER_CUDA_CHECK(cudaStreamWaitEvent(gpu_stream(gpu), event_, 0));
  }

 private:
  int gpu_;
  cudaEvent_t event_ = nullptr;
};

class GpuGroup {
 public:
  // Throws Unsupported when the ranks are no GPUs, and NotHere where there is not more than one.
  explicit GpuGroup(const Problem& problem) : ranks_(problem.ranks) {
    require_cuda();
    if (device_count() < 2) throw NotHere("one GPU");
    if (!problem.gpus) throw Unsupported("its ranks are the GPUs of one process, not processes");
    if (ranks_ > device_count())
      throw Unsupported("the problem is for " + std::to_string(ranks_) + " GPUs; there are " +
                        std::to_string(device_count()));
    for (int gpu = 0; gpu < ranks_; ++gpu) events_.emplace_back(gpu);
  }
  int ranks() const { return ranks_; }

  // To all GPUs what was asked of GPU 0 before is done, and to GPU 0 what was asked of the others: that
  // is the one that is timed and waited for.
  void start() const {
    events_[0].record();
    for (int gpu = 1; gpu < ranks_; ++gpu) events_[0].hold(gpu);
  }
  void finish() const {
    for (int gpu = 1; gpu < ranks_; ++gpu) {
      events_[gpu].record();
      events_[gpu].hold(0);
    }
  }

  // Lets each rank read the memory of the one before it.
  void connect_ring() const {
    for (int gpu = 0; gpu < ranks_; ++gpu) {
      const int previous = (gpu + ranks_ - 1) % ranks_;
      int possible = 0;
      STEPLADDER_CUDA_CHECK(cudaDeviceCanAccessPeer(&possible, gpu, previous));
      if (possible == 0)
        throw NotHere("GPU " + std::to_string(gpu) + " cannot read the memory of GPU " +
                      std::to_string(previous));
      const CurrentGpu here(gpu);
      const cudaError_t status = cudaDeviceEnablePeerAccess(previous, 0);
      if (status == cudaErrorPeerAccessAlreadyEnabled)
        cudaGetLastError();  // by an earlier plan
      else
        STEPLADDER_CUDA_CHECK(status);
    }
  }

 private:
  int ranks_;
  std::vector<StreamEvent> events_;  // one of each GPU
};

}  // namespace stepladder::all_reduce

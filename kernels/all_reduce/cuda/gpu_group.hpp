// The GPUs of this process as the ranks of an all-reduce, one stream per GPU. Only .cu files
// include this.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/common/cuda/gpus.hpp"
#include "kernels/common/cuda/plan.hpp"

namespace stepladder::all_reduce {

// A point in the stream of one GPU for which other streams can wait.
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
  // Work submitted to the stream of `gpu` from now on waits for the event as last recorded.
  void make_wait(int gpu) const {
    const CurrentGpu here(gpu);
    STEPLADDER_CUDA_CHECK(cudaStreamWaitEvent(gpu_stream(gpu), event_, 0));
  }

 private:
  int gpu_;
  cudaEvent_t event_ = nullptr;
};

class GpuGroup {
 public:
  // Throws NotHere on a machine with one GPU, and Unsupported if the ranks of the problem are
  // processes or more than the GPUs.
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

  // The harness times and synchronizes the stream of GPU 0 alone. start() makes all other streams
  // wait for its earlier work; finish() makes it wait for theirs.
  void start() const {
    events_[0].record();
    for (int gpu = 1; gpu < ranks_; ++gpu) events_[0].make_wait(gpu);
  }
  void finish() const {
    for (int gpu = 1; gpu < ranks_; ++gpu) {
      events_[gpu].record();
      events_[gpu].make_wait(0);
    }
  }

  // Enables peer access of each rank to the memory of the previous one. Throws NotHere where the
  // machine cannot.
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
        cudaGetLastError();  // enabled by an earlier plan; clears the error
      else
        STEPLADDER_CUDA_CHECK(status);
    }
  }

 private:
  int ranks_;
  std::vector<StreamEvent> events_;  // one per GPU
};

}  // namespace stepladder::all_reduce

// Many cores with Pthreads in plain sight: every run creates the threads, a barrier separates the
// two phases of the convolution (pixels, then the sum of the threads' weight gradients), and the
// caller joins the threads.
//
// Expected: threads, minus 20 to 60 microseconds per run for creating and joining a thread.
#include <pthread.h>

#include <exception>
#include <memory>
#include <vector>

#include "kernels/common/cpu/simd.hpp"
#include "kernels/common/cpu/thread_pool.hpp"
#include "kernels/convolution/cpu/tiled/tiled.hpp"

namespace stepladder::convolution {
namespace {

class PthreadBarrier final : public Plan {
 public:
  PthreadBarrier(const Problem& problem, const Resources& resources)
      : convolution_(make_tiled(problem, resources.threads)),
        threads_(resources.threads),
        ids_(static_cast<std::size_t>(threads_)) {
    for (int thread = 0; thread < threads_; ++thread) tasks_.push_back({this, thread});
    pthread_barrier_init(&phase_ends_, nullptr, static_cast<unsigned>(threads_));
  }
  ~PthreadBarrier() override { pthread_barrier_destroy(&phase_ends_); }

  void run(const Operands& operands) override {
    operands_ = &operands;
    for (int thread = 1; thread < threads_; ++thread) {
      const int error = pthread_create(&ids_[thread], nullptr, compute_on_place, &tasks_[thread]);
      // The threads created so far wait at the barrier for ever.
      if (error != 0) std::terminate();
    }
    compute(0);
    for (int thread = 1; thread < threads_; ++thread) pthread_join(ids_[thread], nullptr);
  }

 private:
  struct Task {
    PthreadBarrier* plan;
    int thread;
  };

  static void* compute_on_place(void* argument) {
    const Task& task = *static_cast<Task*>(argument);
    bind_to_place(task.thread);
    task.plan->compute(task.thread);
    return nullptr;
  }

  void compute(int thread) {
    for (int phase = 0; phase < convolution_->phases(); ++phase) {
      if (phase > 0) pthread_barrier_wait(&phase_ends_);
      convolution_->run_phase(phase, thread, *operands_);
    }
  }

  std::unique_ptr<ThreadedConvolution> convolution_;
  int threads_;
  const Operands* operands_ = nullptr;
  pthread_barrier_t phase_ends_;
  std::vector<pthread_t> ids_;  // [threads], of which the first is not used
  std::vector<Task> tasks_;     // [threads]
};

constexpr VariantInfo info{
    .name = "pthread_barrier",
    .technique = Technique::pthread,
    .builds_on = "simd",
    .adds = "pixels divided among threads that every run creates; a barrier between the phases",
    .isa = build_isa,
    .threaded = true,
};

const Registration registration{info, make_plan<Convolution, PthreadBarrier>};

}  // namespace
}  // namespace stepladder::convolution

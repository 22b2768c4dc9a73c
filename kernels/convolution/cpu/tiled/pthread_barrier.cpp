// Many cores with Pthreads in plain sight: every run creates the threads (created_threads.hpp), a
// barrier separates the two phases of the convolution (the weights packed, then the pixels; in
// backward_weights the pixels, then the sum of the threads' gradients), and the caller joins the
// threads.
//
// Expected: threads, minus 20 to 60 microseconds per run for creating and joining a thread.
#include <pthread.h>

#include <memory>

#include "kernels/common/cpu/created_threads.hpp"
#include "kernels/common/cpu/simd.hpp"
#include "kernels/convolution/cpu/tiled/tiled.hpp"

namespace stepladder::convolution {
namespace {

class PthreadBarrier final : public Plan {
 public:
  PthreadBarrier(const Problem& problem, const Resources& resources)
      : convolution_(make_tiled(problem, resources.threads)), threads_(resources.threads) {
    pthread_barrier_init(&phase_ends_, nullptr, static_cast<unsigned>(resources.threads));
  }
  ~PthreadBarrier() override { pthread_barrier_destroy(&phase_ends_); }

  void run(const Operands& operands) override {
    threads_.run([&](int thread) {
      convolution_->run_phase(0, thread, operands);
      for (int phase = 1; phase < convolution_->phases(); ++phase) {
        if (!threads_.all_start()) return;  // a thread is missing at the barrier
        pthread_barrier_wait(&phase_ends_);
        convolution_->run_phase(phase, thread, operands);
      }
    });
  }

 private:
  std::unique_ptr<ThreadedConvolution> convolution_;
  CreatedThreads threads_;
  pthread_barrier_t phase_ends_;
};

constexpr VariantInfo info{
    .name = "pthread_barrier",
    .technique = Technique::pthread,
    .builds_on = "packed",
    .adds = "pixels divided among threads that every run creates; a barrier between the phases",
    .idea = Idea::threads,
    .isa = build_isa,
    .threaded = true,
};

const Registration registration{info, make_plan<Convolution, PthreadBarrier>};

}  // namespace
}  // namespace stepladder::convolution

// Divides the work as `openmp` does, on our own thread pool (kernels/common/cpu/thread_pool.hpp).
// It shows what OpenMP does underneath, and what its fork and join cost.
#include "kernels/common/cpu/simd.hpp"
#include "kernels/common/cpu/thread_pool.hpp"
#include "kernels/convolution/cpu/tiled/tiled.hpp"

namespace stepladder::convolution {
namespace {

class Pthread final : public Plan {
 public:
  Pthread(const Problem& problem, const Resources& resources)
      : convolution_(make_tiled(problem, resources.threads)), pool_(resources.threads) {}

  void run(const Operands& operands) override {
    for (int phase = 0; phase < convolution_->phases(); ++phase)
      pool_.run([&](int thread) { convolution_->run_phase(phase, thread, operands); });
  }

 private:
  std::unique_ptr<ThreadedConvolution> convolution_;
  ThreadPool pool_;  // last, so its threads end before the rest is destroyed
};

constexpr VariantInfo info{
    .name = "pthread",
    .technique = Technique::pthread,
    .builds_on = "pthread_barrier",
    .adds = "a pool of threads that the plan keeps and that spin before they sleep",
    .idea = Idea::threads,
    .isa = build_isa,
    .threaded = true,
};

const Registration registration{info, make_plan<Convolution, Pthread>};

}  // namespace
}  // namespace stepladder::convolution

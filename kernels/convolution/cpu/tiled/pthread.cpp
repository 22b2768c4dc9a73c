// The shares of openmp on threads of our own (kernels/common/cpu/thread_pool.hpp), made with the plan
// and woken by each run. It shows what OpenMP does underneath, and what its fork and join cost.
#include "kernels/common/cpu/simd.hpp"
#include "kernels/common/cpu/thread_pool.hpp"
#include "kernels/convolution/cpu/tiled/tiled.hpp"

namespace stepladder::convolution {
namespace {

class Pthread final : public Plan {
 public:
  Pthread(const Problem& problem, const Resources& resources)
      : steps_(make_steps(problem, resources.threads)), pool_(resources.threads) {}

  void run(const Operands& operands) override {
    for (int step = 0; step < Steps::count; ++step)
      pool_.run([&](int thread) { steps_->step(step, thread, operands); });
  }

 private:
  std::unique_ptr<Steps> steps_;
  ThreadPool pool_;  // last: its threads end before the rest goes
};

constexpr VariantInfo info{
    .name = "pthread",
    .technique = Technique::pthread,
    .builds_on = "simd",
    .adds = "the shares of openmp on a pool of threads that the plan keeps",
    .isa = build_isa,
    .threaded = true,
};

const Registration registration{info, make_plan<Convolution, Pthread>};

}  // namespace
}  // namespace stepladder::convolution

// Kept threads that spin before they sleep (kernels/common/cpu/thread_pool.hpp): the next run often
// follows within microseconds, and waking a sleeping thread takes tens of them. This is what OpenMP
// does underneath.
#include "kernels/common/cpu/simd.hpp"
#include "kernels/common/cpu/thread_pool.hpp"
#include "kernels/matmul/cpu/simd_block.hpp"

namespace stepladder::matmul {
namespace {

class Pthread final : public Plan {
 public:
  Pthread(const Problem& problem, const Resources& resources)
      : parts_(problem, resources.threads), pool_(resources.threads) {}

  void run(const Operands& operands) override {
    pool_.run([&](int thread) { parts_.compute(operands, thread); });
  }

 private:
  SimdParts parts_;
  ThreadPool pool_;  // last, so its threads end before the rest is destroyed
};

constexpr VariantInfo info{
    .name = "pthread",
    .technique = Technique::pthread,
    .builds_on = "pthread_condition",
    .adds = "waiting threads spin for some microseconds before they sleep",
    .idea = Idea::threads,
    .isa = build_isa,
    .threaded = true,
};

const Registration registration{info, make_plan<Matmul, Pthread>};

}  // namespace
}  // namespace stepladder::matmul

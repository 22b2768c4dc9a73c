// Many cores with Pthreads, the plainest way: every run creates the threads (created_threads.hpp),
// each computes its part of C with the loops of `simd`, and the caller joins them. No data are
// shared but the operands, so there is nothing to lock.
//
// Expected: threads, minus 20 to 60 microseconds per run for creating and joining a thread.
// Products that take less than that are slower than `simd`.
#include "kernels/common/cpu/created_threads.hpp"
#include "kernels/common/cpu/simd.hpp"
#include "kernels/matmul/cpu/simd_block.hpp"

namespace stepladder::matmul {
namespace {

class PthreadCreate final : public Plan {
 public:
  PthreadCreate(const Problem& problem, const Resources& resources)
      : parts_(problem, resources.threads), threads_(resources.threads) {}

  void run(const Operands& operands) override {
    threads_.run([&](int thread) { parts_.compute(operands, thread); });
  }

 private:
  SimdParts parts_;
  CreatedThreads threads_;
};

constexpr VariantInfo info{
    .name = "pthread_create",
    .technique = Technique::pthread,
    .builds_on = "simd",
    .adds = "rows or columns of C divided among threads that every run creates and joins",
    .idea = Idea::threads,
    .isa = build_isa,
    .threaded = true,
};

const Registration registration{info, make_plan<Matmul, PthreadCreate>};

}  // namespace
}  // namespace stepladder::matmul

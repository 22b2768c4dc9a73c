// Many cores with Pthreads, the plainest way: every run creates the threads, each computes its part
// of C with the loops of `simd`, and the caller joins them. No data are shared but the operands, so
// there is nothing to lock.
//
// Expected: threads, minus 20 to 60 microseconds per run for creating and joining a thread.
// Products that take less than that are slower than `simd`.
#include <pthread.h>

#include <system_error>
#include <vector>

#include "kernels/common/cpu/simd.hpp"
#include "kernels/common/cpu/thread_pool.hpp"
#include "kernels/matmul/cpu/simd_block.hpp"

namespace stepladder::matmul {
namespace {

class PthreadCreate final : public Plan {
 public:
  PthreadCreate(const Problem& problem, const Resources& resources)
      : parts_(problem, resources.threads),
        threads_(resources.threads),
        ids_(static_cast<std::size_t>(threads_)) {
    for (int thread = 0; thread < threads_; ++thread) tasks_.push_back({this, thread});
  }

  void run(const Operands& operands) override {
    operands_ = &operands;
    int created = 1;  // the caller is thread 0
    int error = 0;
    for (; created < threads_ && error == 0; ++created)
      error = pthread_create(&ids_[created], nullptr, compute_on_place, &tasks_[created]);
    if (error != 0) --created;
    parts_.compute(operands, 0);
    for (int thread = 1; thread < created; ++thread) pthread_join(ids_[thread], nullptr);
    if (error != 0) throw std::system_error(error, std::generic_category(), "pthread_create");
  }

 private:
  struct Task {
    PthreadCreate* plan;
    int thread;
  };

  static void* compute_on_place(void* argument) {
    const Task& task = *static_cast<Task*>(argument);
    bind_to_place(task.thread);
    task.plan->parts_.compute(*task.plan->operands_, task.thread);
    return nullptr;
  }

  SimdParts parts_;
  int threads_;
  const Operands* operands_ = nullptr;
  std::vector<pthread_t> ids_;  // [threads], of which the first is not used
  std::vector<Task> tasks_;     // [threads]
};

constexpr VariantInfo info{
    .name = "pthread_create",
    .technique = Technique::pthread,
    .builds_on = "simd",
    .adds = "rows or columns of C divided among threads that every run creates and joins",
    .isa = build_isa,
    .threaded = true,
};

const Registration registration{info, make_plan<Matmul, PthreadCreate>};

}  // namespace
}  // namespace stepladder::matmul

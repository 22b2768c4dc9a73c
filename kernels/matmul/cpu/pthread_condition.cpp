// The plan creates the threads once. Between runs they wait on a condition variable; a run wakes
// them all, and waits on another one until the last has finished.
//
// Expected over `pthread_create`: a run saves creating and joining, but not the wake-up of a
// sleeping thread, 5 to 50 microseconds.
#include <pthread.h>

#include <vector>

#include "kernels/common/cpu/simd.hpp"
#include "kernels/common/cpu/thread_pool.hpp"
#include "kernels/matmul/cpu/simd_block.hpp"

namespace stepladder::matmul {
namespace {

class PthreadCondition final : public Plan {
 public:
  PthreadCondition(const Problem& problem, const Resources& resources)
      : parts_(problem, resources.threads),
        threads_(resources.threads),
        tasks_(static_cast<std::size_t>(threads_)) {
    for (int thread = 1; thread < threads_; ++thread) {
      tasks_[thread] = {this, thread};
      pthread_t id;
      const int error = pthread_create(&id, nullptr, serve, &tasks_[thread]);
      if (error != 0) {
        end_threads();
        throw_not_started(error, thread, threads_);
      }
      ids_.push_back(id);
    }
  }
  ~PthreadCondition() override { end_threads(); }

  void run(const Operands& operands) override {
    pthread_mutex_lock(&mutex_);
    operands_ = &operands;
    unfinished_ = threads_ - 1;
    ++run_;
    pthread_cond_broadcast(&begins_);
    pthread_mutex_unlock(&mutex_);

    parts_.compute(operands, 0);

    pthread_mutex_lock(&mutex_);
    while (unfinished_ > 0) pthread_cond_wait(&all_finished_, &mutex_);
    pthread_mutex_unlock(&mutex_);
  }

 private:
  struct Task {
    PthreadCondition* plan;
    int thread;
  };

  static void* serve(void* argument) {
    const Task& task = *static_cast<Task*>(argument);
    bind_to_place(task.thread);
    task.plan->serve(task.thread);
    return nullptr;
  }

  void serve(int thread) {
    for (int run = 0;; ++run) {
      pthread_mutex_lock(&mutex_);
      while (run_ == run && !ends_) pthread_cond_wait(&begins_, &mutex_);
      const bool ends = ends_;
      pthread_mutex_unlock(&mutex_);
      if (ends) return;

      parts_.compute(*operands_, thread);

      pthread_mutex_lock(&mutex_);
      if (--unfinished_ == 0) pthread_cond_signal(&all_finished_);
      pthread_mutex_unlock(&mutex_);
    }
  }

  void end_threads() {
    pthread_mutex_lock(&mutex_);
    ends_ = true;
    pthread_cond_broadcast(&begins_);
    pthread_mutex_unlock(&mutex_);
    for (const pthread_t id : ids_) pthread_join(id, nullptr);
  }

  SimdParts parts_;
  int threads_;
  std::vector<Task> tasks_;     // [threads], of which the first is not used
  std::vector<pthread_t> ids_;  // of the other threads

  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;  // of all that follows
  pthread_cond_t begins_ = PTHREAD_COND_INITIALIZER, all_finished_ = PTHREAD_COND_INITIALIZER;
  const Operands* operands_ = nullptr;
  int run_ = 0;         // number of runs begun
  int unfinished_ = 0;  // threads still at work
  bool ends_ = false;
};

constexpr VariantInfo info{
    .name = "pthread_condition",
    .technique = Technique::pthread,
    .builds_on = "pthread_create",
    .adds = "threads created once, which wait on a condition variable",
    .idea = Idea::threads,
    .isa = build_isa,
    .threaded = true,
};

const Registration registration{info, make_plan<Matmul, PthreadCondition>};

}  // namespace
}  // namespace stepladder::matmul

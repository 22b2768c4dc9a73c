// Threads that every run creates with pthread_create and joins, for the rungs pthread_create and
// pthread_barrier.
#pragma once

#include <pthread.h>

#include <atomic>
#include <vector>

#include "kernels/common/cpu/thread_pool.hpp"
#include "kernels/common/isa.hpp"

namespace stepladder::inline STEPLADDER_ISA {

class CreatedThreads {
 public:
  explicit CreatedThreads(int threads) : tasks_(static_cast<std::size_t>(threads)) {}

  // Calls work(thread) for thread = 0 … threads - 1, each on its own thread, 0 on the caller's. If
  // a thread cannot be started, those before it end and run() throws std::system_error.
  template <class Work>
  void run(const Work& work) {
    const auto call = [](const void* w, int thread) { (*static_cast<const Work*>(w))(thread); };
    const int threads = static_cast<int>(tasks_.size());
    progress_.store(Progress::creating, std::memory_order_relaxed);
    int created = 1, error = 0;  // the caller is thread 0
    for (; created < threads; ++created) {
      Task& task = tasks_[static_cast<std::size_t>(created)];
      task = {.work = &work, .call = call, .thread = created};
      error = pthread_create(&task.id, nullptr, call_on_place, &task);
      if (error != 0) break;
    }
    progress_.store(error == 0 ? Progress::complete : Progress::failed, std::memory_order_release);
    progress_.notify_all();
    if (error == 0) work(0);
    for (int thread = 1; thread < created; ++thread)
      pthread_join(tasks_[static_cast<std::size_t>(thread)].id, nullptr);
    if (error != 0) throw_not_started(error, created, threads);
  }

  // For work that waits for other threads: false if one of them cannot be started.
  bool all_start() const {
    progress_.wait(Progress::creating, std::memory_order_acquire);
    return progress_.load(std::memory_order_acquire) == Progress::complete;
  }

 private:
  enum class Progress : int { creating, complete, failed };
  struct Task {
    const void* work;
    void (*call)(const void* work, int thread);
    int thread;
    pthread_t id{};
  };

  static void* call_on_place(void* argument) {
    const Task& task = *static_cast<Task*>(argument);
    bind_to_place(task.thread);
    task.call(task.work, task.thread);
    return nullptr;
  }

  std::vector<Task> tasks_;  // [threads], of which the first is not used
  std::atomic<Progress> progress_{Progress::creating};
};

}  // namespace stepladder::inline STEPLADDER_ISA

// A pool of threads, created with a plan and woken by each run. run() creates no threads and
// allocates nothing.
#pragma once

#include <atomic>
#include <memory>
#include <thread>

namespace stepladder {

// Binds the calling thread to OpenMP place `thread`, as in an OpenMP team. Otherwise a new thread
// inherits its creator's affinity, and OpenMP may have bound that one to one processor.
void bind_to_place(int thread);

// Throws std::system_error: "thread 2 of 4 cannot be started", for thread 1, and what `error` says.
[[noreturn]] void throw_not_started(int error, int thread, int threads);

class ThreadPool {
 public:
  // The caller is one of them; starts threads - 1 more, or throws std::system_error.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Calls work(thread) for thread = 0 … threads - 1, each on its own thread, 0 on the caller's.
  // Returns when all calls have returned. `work` must not throw; only one run at a time.
  template <class Work>
  void run(const Work& work) {
    run(&work, [](const void* w, int thread) { (*static_cast<const Work*>(w))(thread); });
  }

 private:
  using Call = void (*)(const void* work, int thread);
  void run(const void* work, Call call);
  void serve(int thread);
  void end();

  int threads_ = 1;
  const void* work_ = nullptr;
  Call call_ = nullptr;                         // null: the threads end
  alignas(64) std::atomic<int> round_{0};       // incremented by each run; the threads wait on it
  alignas(64) std::atomic<int> unfinished_{0};  // threads still at work; the caller waits on it
  std::unique_ptr<std::thread[]> workers_;      // [threads - 1]
};

}  // namespace stepladder

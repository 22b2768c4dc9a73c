// Threads that outlive a call: made with a plan, woken by each run. No thread is created and
// nothing is allocated in run().
#pragma once

#include <atomic>
#include <memory>
#include <thread>

namespace stepladder {

class ThreadPool {
 public:
  explicit ThreadPool(int threads);  // the caller is one of them; starts threads - 1 more
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Calls work(thread) for thread = 0 … threads - 1, each on its own thread, 0 on the caller's, and
  // returns when all have returned. `work` must not throw. One run at a time.
  template <class Work>
  void run(const Work& work) {
    run(&work, [](const void* w, int thread) { (*static_cast<const Work*>(w))(thread); });
  }

 private:
  using Call = void (*)(const void* work, int thread);
  void run(const void* work, Call call);
  void serve(int thread);

  int threads_;
  const void* work_ = nullptr;
  Call call_ = nullptr;                         // null: the threads end
  alignas(64) std::atomic<int> round_{0};       // one more for each run: what the threads wait for
  alignas(64) std::atomic<int> unfinished_{0};  // threads still at work: what the caller waits for
  std::unique_ptr<std::thread[]> workers_;      // [threads - 1]
};

}  // namespace stepladder

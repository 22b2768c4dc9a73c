#include "kernels/common/cpu/thread_pool.hpp"

#include <omp.h>
#include <pthread.h>
#include <sched.h>

#include <string>
#include <system_error>
#include <vector>

#include "kernels/common/cpu/instructions.hpp"

namespace stepladder {
namespace {

// Waits until `value` differs from `old`. It spins first, because the next run often follows within
// microseconds and waking a sleeping thread takes tens of them; then it sleeps (on Linux a futex).
void wait_for_change(const std::atomic<int>& value, int old) {
  constexpr int spins = 2000;  // about 20 to 100 microseconds
  for (int i = 0; i < spins; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    pause_core();
  }
  value.wait(old, std::memory_order_acquire);
}

}  // namespace

void bind_to_place(int thread) {
  const int places = omp_get_num_places();
  if (places == 0) return;  // threads are not bound
  const int place = thread % places;
  std::vector<int> processors(static_cast<std::size_t>(omp_get_place_num_procs(place)));
  omp_get_place_proc_ids(place, processors.data());
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int processor : processors) CPU_SET(processor, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

void throw_not_started(int error, int thread, int threads) {
  throw std::system_error(error, std::generic_category(),
                          "thread " + std::to_string(thread + 1) + " of " +
                              std::to_string(threads) + " cannot be started");
}

ThreadPool::ThreadPool(int threads) : workers_(std::make_unique<std::thread[]>(threads - 1)) {
  try {
    for (; threads_ < threads; ++threads_)
      workers_[threads_ - 1] = std::thread(&ThreadPool::serve, this, threads_);
  } catch (const std::system_error& error) {  // those that have started end
    end();
    throw_not_started(error.code().value(), threads_, threads);
  }
}

ThreadPool::~ThreadPool() { end(); }

void ThreadPool::end() {
  call_ = nullptr;
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  for (int thread = 1; thread < threads_; ++thread) workers_[thread - 1].join();
}

void ThreadPool::run(const void* work, Call call) {
  if (threads_ > 1) {
    work_ = work;
    call_ = call;
    unfinished_.store(threads_ - 1, std::memory_order_relaxed);
    round_.fetch_add(1, std::memory_order_release);
    round_.notify_all();
  }
  call(work, 0);
  for (int left = unfinished_.load(std::memory_order_acquire); left != 0;
       left = unfinished_.load(std::memory_order_acquire))
    wait_for_change(unfinished_, left);
}

void ThreadPool::serve(int thread) {
  bind_to_place(thread);
  for (int round = 0;; ++round) {
    wait_for_change(round_, round);
    if (call_ == nullptr) return;
    call_(work_, thread);
    if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) unfinished_.notify_one();
  }
}

}  // namespace stepladder

// The pool of threads of the Pthreads rungs and of the training modes. Built with
// -fsanitize=thread, this detects every access of the caller or of the next run that run() does not
// order.
#include "kernels/common/cpu/thread_pool.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace stepladder {
namespace {

TEST(ThreadPool, EveryRunCallsEveryThreadOnceAndWaitsForAll) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    std::vector<int> calls(static_cast<std::size_t>(threads), 0);
    constexpr int runs = 200;
    for (int run = 1; run <= runs; ++run) {
      pool.run([&](int thread) { ++calls[static_cast<std::size_t>(thread)]; });
      ASSERT_EQ(calls, std::vector<int>(calls.size(), run)) << threads << " threads";
    }
  }
}

TEST(ThreadPool, ARunSeesWhatTheCallerAndTheRunBeforeWrote) {
  constexpr int threads = 4;
  ThreadPool pool(threads);
  std::vector<int> values(threads, 0), next(threads, 0);
  for (int run = 0; run < 200; ++run) {
    std::iota(values.begin(), values.end(), run);
    pool.run([&](int thread) { next[thread] = values[(thread + 1) % threads]; });
    pool.run([&](int thread) { values[thread] = next[(thread + 1) % threads]; });
    for (int thread = 0; thread < threads; ++thread)
      ASSERT_EQ(values[thread], run + (thread + 2) % threads);
  }
}

}  // namespace
}  // namespace stepladder

#include "kernels/all_reduce/mpi/shared_window/flags.hpp"

#include <sched.h>

#include <stdexcept>
#include <string>

namespace stepladder::all_reduce {
namespace {

std::string text(std::chrono::milliseconds time) {
  return time.count() % 1000 == 0 ? std::to_string(time.count() / 1000) + " s"
                                  : std::to_string(time.count()) + " ms";
}

}  // namespace

void wait_yielding(const Flag& flag, Step step, int rank, std::chrono::milliseconds limit) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + limit;
  while (flag.load(std::memory_order_acquire) < step) {
    if (Clock::now() > end)
      throw std::runtime_error("shared_window: rank " + std::to_string(rank) +
                               " did not arrive within " + text(limit));
    sched_yield();
  }
}

}  // namespace stepladder::all_reduce

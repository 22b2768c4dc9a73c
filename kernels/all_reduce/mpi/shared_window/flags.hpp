// Flags in memory that ranks share: counters that one rank increases and the others wait for. A
// store with release order and the load with acquire order that sees it make everything that the
// writer did before visible to the reader.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "kernels/common/cpu/instructions.hpp"
#include "kernels/common/isa.hpp"

namespace stepladder::all_reduce {

using Step = std::uint64_t;  // at 10^9 steps per second it lasts for 584 years
using Flag = std::atomic<Step>;
static_assert(Flag::is_always_lock_free, "a lock would be private to each process");

// How a rank waits: it polls `polls` times with a pause between, then yields the core each time,
// which lets the rank it waits for run where ranks share a core.
struct Patience {
  int polls = 2000;
  std::chrono::milliseconds limit{60000};
};

// Yields until the flag is `step` or more. Throws std::runtime_error, which names the rank, after
// the limit: a rank that ended must not leave the others waiting forever.
void wait_yielding(const Flag& flag, Step step, int rank, std::chrono::milliseconds limit);

inline namespace STEPLADDER_ISA {

// Waits until `rank` has increased its flag to `step` or more.
inline void wait_for(const Flag& flag, Step step, int rank, const Patience& patience) {
  for (int poll = 0; poll < patience.polls; ++poll) {
    if (flag.load(std::memory_order_acquire) >= step) return;
    pause_core();
  }
  wait_yielding(flag, step, rank, patience.limit);
}

}  // namespace STEPLADDER_ISA
}  // namespace stepladder::all_reduce

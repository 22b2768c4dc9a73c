// Emulates kernels/common/cuda/barrier.hpp.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "tests/simt/hopper.hpp"

namespace stepladder {

class Barrier {
 public:
  void initialise(unsigned arrivals) { simt::initialise_barrier(this, arrivals); }
  void arrive() { simt::arrive_at_barrier(this, 0); }
  void arrive_at(unsigned rank) { simt::arrive_at_barrier_of(rank, this); }
  void arrive_and_expect_tx(unsigned bytes) { simt::arrive_at_barrier(this, bytes); }
  void arrive_after_copies() { simt::arrive_after_copies(this); }
  void wait(unsigned parity, const simt::Here& place = simt::Here::current()) {
    simt::wait_at_barrier(this, parity, place);
  }

 private:
  [[maybe_unused]] std::uint64_t state_;
};

inline void fence_barrier_init() {}

}  // namespace stepladder

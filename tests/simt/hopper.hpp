// What a Hopper multiprocessor does in the background while the threads of a block go on: copies of
// boxes by the TMA, which report to barriers, and products of warpgroups. Each takes effect only when
// a thread waits for it, and what it will write holds NaN until then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <span>

namespace stepladder::simt {

// Called by the multiprocessor when a cluster begins, and when a block of it ends.
void begin_background();
void end_background(unsigned rank);  // throws SimtError when something was never waited for

// mbarrier: see kernels/common/cuda/barrier.hpp. A barrier is known by its address.
void initialise_barrier(const void* barrier, unsigned arrivals);
void arrive_at_barrier(const void* barrier, std::size_t bytes);
void arrive_at_barrier_of(unsigned rank, const void* barrier);
void arrive_after_copies(const void* barrier);  // those that the thread has started, of copy_later
void wait_at_barrier(const void* barrier, unsigned parity, const std::source_location& place);

// A box of a row-major matrix: box_rows of 32 columns, from [row, column] on.
struct Box {
  const float* matrix;
  std::int64_t rows, columns, pitch;
  int box_rows, row, column;
};
// To the same place in the blocks of the cluster that the mask names, each told by its own barrier.
void load_box_later(float* to, const Box& box, const void* barrier, unsigned mask);

// wgmma of m64nNk8, where a thread has N / 2 sums: see kernels/common/cuda/wgmma.hpp.
void fence_products();
void multiply_later(std::span<float> d, const std::uint32_t (&a)[4], std::uint64_t b,
                    const std::source_location& place);
void finish_products(const std::source_location& place);

}  // namespace stepladder::simt

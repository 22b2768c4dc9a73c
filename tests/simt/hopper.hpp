// Asynchronous operations of a Hopper multiprocessor: TMA copies, which report to mbarriers, and
// wgmma products. Each takes effect when a thread waits for it; its destination holds NaN until
// then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <span>

namespace stepladder::simt {

// Called by the multiprocessor when a cluster starts, and when one of its blocks finishes.
void begin_async();
void end_async(unsigned rank);  // throws SimtError if the block did not wait for all operations

// mbarrier: see kernels/common/cuda/barrier.hpp. Barriers are identified by address.
void initialise_barrier(const void* barrier, unsigned arrivals);
void arrive_at_barrier(const void* barrier, std::size_t bytes);
void arrive_at_barrier_of(unsigned rank, const void* barrier);
void arrive_after_copies(const void* barrier);  // after this thread's copies by copy_later
void wait_at_barrier(const void* barrier, unsigned parity, const std::source_location& place);

// A box of a row-major matrix: box_rows rows of 32 columns, starting at [row, column].
struct Box {
  const float* matrix;
  std::int64_t rows, columns, pitch;
  int box_rows, row, column;
};
// Copies the box to the same offset in all blocks of the mask; reports to the barrier of each.
void load_box_later(float* to, const Box& box, const void* barrier, unsigned mask);

// wgmma m64nNk8, N / 2 accumulators per thread: see kernels/common/cuda/wgmma.hpp.
void fence_products();
void multiply_later(std::span<float> d, const std::uint32_t (&a)[4], std::uint64_t b,
                    const std::source_location& place);
// Makes the products since the last call a group; finishes all groups but the `in_flight` newest.
void finish_products(std::size_t in_flight, const std::source_location& place);

}  // namespace stepladder::simt

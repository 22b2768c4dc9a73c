// Runs the blocks of a kernel on the CPU: cluster after cluster in random order, the threads of a
// cluster's blocks (without clusters, of one block) as fibers. A thread runs until it must wait, at a
// barrier or for its warp; then one of those that can go on, drawn at random, does. What a kernel may
// not rely on so goes wrong here: the order of blocks and threads, the lockstep of a warp, the content
// of fresh shared memory and of that of a block that has ended.
//
// What breaks a rule of CUDA throws SimtError with the place.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <source_location>
#include <stdexcept>

#include "tests/simt/vector_types.hpp"

namespace stepladder::simt {

class SimtError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

inline constexpr std::size_t most_threads = 1024;  // of a block, and here of a cluster

struct Launch {
  dim3 grid, block;
  unsigned cluster;  // blocks along x
  std::size_t shared_bytes;
  std::function<void()> thread;  // the kernel with its arguments, for one thread
};

void run(const Launch& launch);  // returns when the last block is done

// What decides the order of blocks and threads from here on.
void seed_order(unsigned long long seed);
std::size_t draw(std::size_t count);  // below count, from what seed_order began

// What the program asked of the runtime so far.
struct Calls {
  std::size_t allocations = 0;  // of memory, the device's or pinned
  std::size_t launches = 0;     // of kernels by themselves, those included that were only recorded
  std::size_t graphs = 0;       // launched
};
extern Calls calls;

// From here on the device answers as a real one does after an illegal access; or works again.
void break_device(bool broken);

// --- what a thread of a block calls --------------------------------------------------------------

[[noreturn]] void fail(const std::string& what);  // throws SimtError, naming block and thread

// Waits until all threads of the block have come here: to this very place in the source.
void meet_block(const std::source_location& place);

// All threads of all blocks of the cluster arrive, and wait until all have.
void arrive_at_cluster();
void wait_for_cluster(const std::source_location& place);
unsigned cluster_rank();  // of this block
unsigned cluster_size();  // blocks

// The lanes of `mask` meet. The last to come gets true and everybody's data (null for a lane that is
// not in the mask, or not in the block), does what is to be done for all, and calls release_warp;
// the others get false after that.
using WarpData = std::array<void*, 32>;
bool meet_warp(unsigned mask, const char* what, const std::source_location& place, void* data,
               WarpData& everybody);
void release_warp(unsigned mask);

template <class Data, class Combine>
void with_warp(unsigned mask, const char* what, const std::source_location& place, Data& data,
               const Combine& combine) {
  WarpData everybody;
  if (!meet_warp(mask, what, place, &data, everybody)) return;
  std::array<Data*, 32> lanes;
  for (std::size_t i = 0; i < lanes.size(); ++i) lanes[i] = static_cast<Data*>(everybody[i]);
  combine(lanes);
  release_warp(mask);
}

unsigned lane();

// Waits until another thread calls wake with what this_thread() is here.
void* this_thread();
void sleep(const char* what, const std::source_location& place);
void wake(void* thread);

unsigned thread_of_block();  // as its warps count them
unsigned block_size();       // threads

// Every declaration of __shared__ variables calls this: the first of a block fills them with NaN.
void begin_shared();
std::byte* dynamic_shared_memory();
std::byte* dynamic_shared_memory_of(unsigned rank);  // of a block that has begun and not ended
std::size_t shared_offset(const void* memory);       // in the block's dynamic shared memory
bool is_shared(const void* memory, std::size_t bytes);

// Copies that take effect when they are waited for. What they write holds NaN in the meantime.
void copy_later(void* shared, const void* global, std::size_t bytes, std::size_t valid);
void group_copies();
void finish_copies(std::size_t newest_groups_left);
std::function<void()> take_copies();  // the thread's, for another to finish

}  // namespace stepladder::simt

// Of the thread that runs.
inline uint3 threadIdx, blockIdx;
inline dim3 blockDim, gridDim;

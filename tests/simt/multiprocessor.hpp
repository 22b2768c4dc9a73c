// Runs the blocks of a kernel on the CPU, cluster after cluster in random order; without clusters,
// a cluster is one block. The threads of a cluster are fibers: a thread runs until it waits at a
// barrier or for its warp; then a random thread that is ready continues. Kernels fail here if they
// rely on the order of blocks or threads, on the lockstep of a warp, or on the contents of
// uninitialised shared memory and of that of a finished block.
//
// A violation of CUDA's rules throws SimtError with the source location.
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

inline constexpr std::size_t max_threads = 1024;  // of a block; in the emulator, also of a cluster

struct Launch {
  dim3 grid, block;
  unsigned cluster;  // blocks of a cluster, along x
  std::size_t shared_bytes;
  std::function<void()> thread;  // the kernel with its arguments, for one thread
};

void run(const Launch& launch);  // returns when the last block has finished

// Seeds the random order of blocks, threads and streams.
void seed_order(unsigned long long seed);
std::size_t draw(std::size_t count);  // the next random number of that order, in [0, count)

// Calls of the runtime so far.
struct Calls {
  std::size_t allocations = 0;  // of device or pinned memory
  std::size_t launches = 0;     // of single kernels, including captured ones
  std::size_t graphs = 0;       // launches of graphs
  std::size_t attributes = 0;   // set for kernels
  std::size_t tensor_maps = 0;  // encoded
};
extern Calls calls;

// Makes the device return errors as a real one does after an illegal access, or work again.
void break_device(bool broken);

// --- functions for the threads of a block --------------------------------------------------------

[[noreturn]] void fail(const std::string& what);  // throws SimtError, naming block and thread

// Waits until all threads of the block have arrived at the same source location.
void sync_block(const std::source_location& place);

// All threads of all blocks of the cluster must arrive before any wait returns.
void arrive_at_cluster();
void wait_for_cluster(const std::source_location& place);
unsigned cluster_rank();  // of this block
unsigned cluster_size();  // blocks

// Collects the data of the lanes of `mask`. The last lane to arrive gets true and the data of all
// (null for lanes that are not in the mask or not in the block), does the work of all lanes and
// calls release_warp. Then the other lanes return false.
using WarpData = std::array<void*, 32>;
bool gather_warp(unsigned mask, const char* what, const std::source_location& place, void* data,
                 WarpData& all);
void release_warp(unsigned mask);

// A warp-wide operation: one lane calls combine(data of all lanes).
template <class Data, class Combine>
void warp_collective(unsigned mask, const char* what, const std::source_location& place, Data& data,
                     const Combine& combine) {
  WarpData all;
  if (!gather_warp(mask, what, place, &data, all)) return;
  std::array<Data*, 32> lanes;
  for (std::size_t i = 0; i < lanes.size(); ++i) lanes[i] = static_cast<Data*>(all[i]);
  combine(lanes);
  release_warp(mask);
}

unsigned lane();

// sleep() waits until another thread calls wake() with this thread's this_thread().
void* this_thread();
void sleep(const char* what, const std::source_location& place);
void wake(void* thread);

unsigned thread_of_block();  // linear index
unsigned block_size();       // threads

// Called by every declaration of a __shared__ variable; the first call of a block fills all of them
// with NaN.
void begin_shared();
std::byte* dynamic_shared_memory();
std::byte* dynamic_shared_memory_of(unsigned rank);  // of a block that has started and not finished
std::size_t shared_offset(const void* memory);       // in the block's dynamic shared memory
bool is_shared(const void* memory, std::size_t bytes);

// Asynchronous copies of `valid` bytes and zeros up to `bytes`. They take effect when the thread
// waits for them; their destination holds NaN until then.
void copy_later(void* shared, const void* global, std::size_t bytes, std::size_t valid);
void group_copies();
void finish_copies(std::size_t pending_groups);  // all but the newest `pending_groups` groups
std::function<void()> take_copies();  // removes the thread's copies; the result completes them

}  // namespace stepladder::simt

// The built-in variables of the running thread.
inline uint3 threadIdx, blockIdx;
inline dim3 blockDim, gridDim;

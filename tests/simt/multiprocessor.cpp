#include "tests/simt/multiprocessor.hpp"

#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "harness/problem/random.hpp"
#include "tests/simt/fiber.hpp"
#include "tests/simt/hopper.hpp"

namespace stepladder::simt {
namespace {

constexpr std::size_t stack_bytes = std::size_t{128} << 10;
constexpr int nan_byte = 0xff;  // four of them are a NaN

Random order(1);

std::string text(const std::source_location& place) {
  return std::string(place.file_name()) + ":" + std::to_string(place.line());
}

bool same(const std::source_location& a, const std::source_location& b) {
  return a.line() == b.line() && a.column() == b.column() &&
         std::strcmp(a.file_name(), b.file_name()) == 0;
}

std::string text(const uint3& index) {
  return fmt::format("({}, {}, {})", index.x, index.y, index.z);
}

uint3 unravel(std::size_t index, const dim3& size) {
  return {static_cast<unsigned>(index % size.x), static_cast<unsigned>(index / size.x % size.y),
          static_cast<unsigned>(index / size.x / size.y)};
}

// __shared__ variables are thread_local, and blocks run on an OS thread of their own: this is the
// program's part of that thread's local storage.
std::span<std::byte> thread_local_storage() {
  std::span<std::byte> found;
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* result) {
        for (int i = 0; i < object->dlpi_phnum; ++i)
          if (object->dlpi_phdr[i].p_type == PT_TLS)
            *static_cast<std::span<std::byte>*>(result) = {
                static_cast<std::byte*>(object->dlpi_tls_data), object->dlpi_phdr[i].p_memsz};
        return 1;  // the first object is the program; stop
      },
      &found);
  return found;
}

struct Copy {
  void* shared;
  const void* global;
  std::size_t bytes, valid;

  void take_effect() const {
    if (valid > 0) std::memcpy(shared, global, valid);  // otherwise global may be null
    std::memset(static_cast<std::byte*>(shared) + valid, 0, bytes - valid);
  }
};

enum class State { ready, at_barrier, at_cluster_barrier, in_warp, asleep, ended };

struct Block;

struct Thread {
  Fiber fiber;
  Block* block = nullptr;
  uint3 index;
  State state = State::ready;
  // where it waits, and for what
  std::source_location place;
  const char* what = "";
  unsigned mask = 0;
  void* data = nullptr;
  // asynchronous copies in flight
  std::vector<Copy> ungrouped;
  std::deque<std::vector<Copy>> groups;
  // at the barrier of its cluster
  bool has_arrived = false, may_pass = false;
};

// Dynamic shared memory between guard zones.
class GuardedShared {
 public:
  explicit GuardedShared(std::size_t bytes)
      : bytes_(bytes), memory_(bytes + 2 * guard + alignment) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data()) + guard;
    data_ = memory_.data() + guard + (alignment - address % alignment) % alignment;
  }
  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

  void reset() {
    std::memset(data_ - guard, untouched, guard);
    std::memset(data_, nan_byte, bytes_);
    std::memset(data_ + bytes_, untouched, guard);
  }
  bool is_intact() const {
    const auto is_untouched = [](std::byte b) { return b == std::byte{untouched}; };
    return std::all_of(data_ - guard, data_, is_untouched) &&
           std::all_of(data_ + bytes_, data_ + bytes_ + guard, is_untouched);
  }

 private:
  static constexpr std::size_t guard = 512, alignment = 1024;
  static constexpr unsigned char untouched = 0x7f;
  std::size_t bytes_;
  std::vector<std::byte> memory_;
  std::byte* data_;
};

struct Block {
  Block(unsigned rank_, std::span<Thread> threads_, std::size_t shared_bytes)
      : rank(rank_), threads(threads_), shared(shared_bytes) {}

  unsigned rank;  // in the cluster
  std::span<Thread> threads;
  GuardedShared shared;
  uint3 index{};
  std::size_t at_barrier = 0;
  const Thread* first_at_barrier = nullptr;
  bool has_started = false;
  std::size_t ended = 0;  // number of threads

  bool has_ended() const { return ended == threads.size(); }
};

class Multiprocessor {
 public:
  explicit Multiprocessor(const Launch& launch)
      : launch_(launch),
        threads_(std::size_t{launch.block.x} * launch.block.y * launch.block.z * launch.cluster),
        shared_variables_(thread_local_storage()) {
    // Kept between launches: fresh memory would cost a page fault per thread.
    static const std::unique_ptr<std::byte[]> all_stacks(new std::byte[max_threads * stack_stride]);
    stacks_ = all_stacks.get();
    const std::size_t block_threads = threads_.size() / launch.cluster;
    for (unsigned rank = 0; rank < launch.cluster; ++rank)
      blocks_.emplace_back(rank, std::span(threads_).subspan(rank * block_threads, block_threads),
                           launch.shared_bytes);
  }

  // Runs the blocks of the cluster that starts at block `first`.
  void run_cluster(std::size_t first) {
    shared_is_filled_ = false;
    ready_.clear();
    delayed_.clear();
    for (Block& block : blocks_) {
      block.index = unravel(first + block.rank, launch_.grid);
      block.shared.reset();
      block.at_barrier = 0;
      block.has_started = false;
      block.ended = 0;
      for (std::size_t i = 0; i < block.threads.size(); ++i) prepare(block, i);
      if (blocks_.size() > 1 && draw(2) == 0)
        delayed_.push_back(&block);
      else
        start(block);
    }
    arrived_ = 0;
    begin_async();
    while ((!ready_.empty() || !delayed_.empty()) && error_ == nullptr) {
      if (ready_.empty()) {
        start(*delayed_.back());
        delayed_.pop_back();
      }
      std::swap(ready_[draw(ready_.size())], ready_.back());
      running_ = ready_.back();
      ready_.pop_back();
      threadIdx = running_->index;
      blockIdx = running_->block->index;
      running_->block->has_started = true;
      switch_fiber(scheduler_, running_->fiber);
      if (error_ == nullptr && running_->state == State::ended) end_thread(*running_->block);
    }
    if (error_ != nullptr) std::rethrow_exception(error_);
    expect_all_ended();
    expect_stacks_held();
  }

  Thread& running() { return *running_; }
  Block& block() const { return *running_->block; }
  unsigned cluster_size() const { return static_cast<unsigned>(blocks_.size()); }
  const Block& block_of(unsigned rank) const {
    if (rank >= blocks_.size())
      fail("accesses block " + std::to_string(rank) + " of a cluster of " +
           std::to_string(blocks_.size()));
    const Block& block = blocks_[rank];
    if (!block.has_started || block.has_ended())
      fail("accesses the shared memory of block " + text(block.index) +
           " of its cluster, which has " + (block.has_started ? "ended" : "not started"));
    return block;
  }

  void sync_block(const std::source_location& place) {
    Block& own = block();
    if (own.at_barrier == 0) own.first_at_barrier = running_;
    const Thread& first = *own.first_at_barrier;
    running_->place = place;
    if (!same(first.place, place))
      fail("waits at the barrier at " + text(place) + " and thread " + text(first.index) +
           " at another, at " + text(first.place));
    if (++own.at_barrier < own.threads.size()) return wait(State::at_barrier);
    own.at_barrier = 0;
    for (Thread& other : own.threads)
      if (&other != running_) wake(other);
  }

  void arrive_at_cluster() {
    if (std::exchange(running_->has_arrived, true))
      fail("arrives at the barrier of its cluster twice");
    if (++arrived_ < threads_.size()) return;
    arrived_ = 0;
    for (Thread& thread : threads_) {
      thread.has_arrived = false;
      thread.may_pass = true;
      if (thread.state == State::at_cluster_barrier) wake(thread);
    }
  }

  void wait_for_cluster(const std::source_location& place) {
    running_->place = place;
    if (!running_->has_arrived && !running_->may_pass)
      fail("waits at the barrier of its cluster without having arrived, at " + text(place));
    if (!running_->may_pass) wait(State::at_cluster_barrier);
    running_->may_pass = false;
  }

  bool gather_warp(unsigned mask, const char* what, const std::source_location& place, void* data,
                   WarpData& all) {
    if ((mask >> lane() & 1U) == 0)
      fail(std::string("calls ") + what + " with a mask without its own lane, at " + text(place));
    running_->place = place;
    running_->what = what;
    running_->mask = mask;
    running_->data = data;
    all.fill(nullptr);
    all[lane()] = data;
    bool all_arrived = true;
    for_lanes(mask, [&](std::size_t i, const Thread& other) {
      if (&other == running_) return;
      const bool has_arrived = other.state == State::in_warp && other.mask == mask;
      if (has_arrived && (std::strcmp(other.what, what) != 0 || !same(other.place, place)))
        fail(std::string("calls ") + what + " at " + text(place) + " and lane " +
             std::to_string(i) + " of its warp " + other.what + " at " + text(other.place));
      all_arrived &= has_arrived;
      all[i] = other.data;
    });
    if (!all_arrived) wait(State::in_warp);
    return all_arrived;
  }

  void release_warp(unsigned mask) {
    for_lanes(mask, [&](std::size_t, Thread& other) {
      if (&other != running_) wake(other);
    });
  }

  void sleep(const char* what, const std::source_location& place) {
    running_->place = place;
    running_->what = what;
    wait(State::asleep);
  }

  void wake(Thread& thread) {
    thread.state = State::ready;
    ready_.push_back(&thread);
  }

  unsigned thread_of_block() const {
    return static_cast<unsigned>(running_ - block().threads.data());
  }
  unsigned lane() const { return thread_of_block() % 32; }

  void begin_shared() {
    if (blocks_.size() > 1)
      fail(
          "has __shared__ variables, which the emulator supports only without clusters; "
          "expected dynamic_shared()");
    if (std::exchange(shared_is_filled_, true)) return;
    std::memset(shared_variables_.data(), nan_byte, shared_variables_.size());
  }

  bool is_shared(const void* memory, std::size_t bytes) const {
    const auto* first = static_cast<const std::byte*>(memory);
    const auto holds = [&](std::span<const std::byte> range) {
      return std::less_equal<>{}(range.data(), first) &&
             std::less_equal<>{}(first + bytes, range.data() + range.size());
    };
    const GuardedShared& dynamic = block().shared;
    return holds(shared_variables_) || holds({dynamic.data(), dynamic.bytes()});
  }

  static Multiprocessor* current;

 private:
  // Not a power of two, so that the tops of the stacks map to different cache sets. A stack
  // overflow overwrites the canary at its end.
  static constexpr std::size_t stack_stride = stack_bytes + 192;
  static constexpr std::array canary{std::byte{0xca}, std::byte{0x4a}, std::byte{0x12},
                                     std::byte{0xe5}, std::byte{0x90}, std::byte{0x3b},
                                     std::byte{0x77}, std::byte{0xd8}};

  void prepare(Block& block, std::size_t i) {
    Thread& thread = block.threads[i];
    const auto number = static_cast<std::size_t>(&thread - threads_.data());
    const std::span<std::byte> stack(stacks_ + number * stack_stride, stack_stride);
    std::ranges::copy(canary, stack.begin());
    thread.fiber.prepare(stack.subspan(canary.size()), [] { current->run_thread(); });
    thread.block = &block;
    thread.index = unravel(i, launch_.block);
    thread.state = State::ready;
    thread.ungrouped.clear();
    thread.groups.clear();
    thread.has_arrived = thread.may_pass = false;
  }

  void start(Block& block) {
    for (Thread& thread : block.threads) ready_.push_back(&thread);
  }

  // The last thread of a block fills its shared memory with NaN, for blocks that still read it.
  void end_thread(Block& block) {
    ++block.ended;
    if (!block.has_ended()) return;
    end_async(block.rank);
    if (!block.shared.is_intact())
      throw SimtError("block " + text(block.index) + " wrote out of the bounds of its " +
                      std::to_string(block.shared.bytes()) + " bytes of dynamic shared memory");
    block.shared.reset();
  }

  [[noreturn]] void run_thread() {
    finish_first_switch(scheduler_);
    try {
      launch_.thread();
    } catch (...) {
      if (error_ == nullptr) error_ = std::current_exception();
    }
    running_->state = State::ended;
    switch_fiber(running_->fiber, scheduler_);
    std::terminate();  // the scheduler never resumes a finished thread
  }

  void wait(State state) {
    Thread& me = *running_;
    me.state = state;
    switch_fiber(me.fiber, scheduler_);
  }

  template <class Visit>
  void for_lanes(unsigned mask, const Visit& visit) {
    const std::span<Thread> threads = block().threads;
    const std::size_t first = std::size_t{thread_of_block()} / 32 * 32;
    for (std::size_t i = 0; i < 32 && first + i < threads.size(); ++i)
      if ((mask >> i & 1U) != 0) visit(i, threads[first + i]);
  }

  void expect_all_ended() const {
    const auto waiting = std::ranges::find_if(
        threads_, [](const Thread& thread) { return thread.state != State::ended; });
    if (waiting == threads_.end()) return;
    const Block& block = *waiting->block;
    const auto what = [&]() -> std::string {
      if (waiting->state == State::at_barrier) return "at the barrier";
      if (waiting->state == State::at_cluster_barrier) return "at the barrier of its cluster";
      if (waiting->state == State::asleep) return std::string("for ") + waiting->what;
      return std::string("for its warp in ") + waiting->what;
    };
    throw SimtError("block " + text(block.index) + " waits forever: thread " +
                    text(waiting->index) + " " + what() + " at " + text(waiting->place) + "; " +
                    std::to_string(block.at_barrier) + " of " +
                    std::to_string(block.threads.size()) + " threads are at a barrier, " +
                    std::to_string(block.ended) + " have ended");
  }

  void expect_stacks_held() const {
    for (std::size_t i = 0; i < threads_.size(); ++i)
      if (!std::equal(canary.begin(), canary.end(), stacks_ + i * stack_stride))
        throw SimtError("a thread overflowed its stack of " + std::to_string(stack_bytes) +
                        " bytes");
  }

  const Launch& launch_;
  std::vector<Thread> threads_;
  std::byte* stacks_;
  std::span<std::byte> shared_variables_;
  bool shared_is_filled_ = false;
  std::deque<Block> blocks_;  // of the cluster
  std::size_t arrived_ = 0;   // number of threads at the barrier of the cluster
  Fiber scheduler_;
  Thread* running_ = nullptr;
  std::vector<Thread*> ready_;
  std::vector<Block*> delayed_;  // blocks that start when no thread is ready
  std::exception_ptr error_;
};

Multiprocessor* Multiprocessor::current = nullptr;

}  // namespace

void seed_order(unsigned long long seed) { order = Random(seed); }

std::size_t draw(std::size_t count) {
  return static_cast<std::size_t>(order.integer(0, static_cast<std::int64_t>(count) - 1));
}

void run(const Launch& launch) {
  std::vector<std::size_t> clusters(std::size_t{launch.grid.x} * launch.grid.y * launch.grid.z /
                                    launch.cluster);
  std::iota(clusters.begin(), clusters.end(), std::size_t{0});
  for (std::size_t i = clusters.size(); i > 1; --i) std::swap(clusters[i - 1], clusters[draw(i)]);

  std::exception_ptr error;
  std::thread([&] {
    Multiprocessor multiprocessor(launch);
    Multiprocessor::current = &multiprocessor;
    gridDim = launch.grid;
    blockDim = launch.block;
    try {
      for (const std::size_t cluster : clusters)
        multiprocessor.run_cluster(cluster * launch.cluster);
    } catch (...) {
      error = std::current_exception();
    }
    Multiprocessor::current = nullptr;
  }).join();
  if (error != nullptr) std::rethrow_exception(error);
}

void fail(const std::string& what) {
  throw SimtError("thread " + text(threadIdx) + " of block " + text(blockIdx) + " " + what);
}

void sync_block(const std::source_location& place) { Multiprocessor::current->sync_block(place); }

void arrive_at_cluster() { Multiprocessor::current->arrive_at_cluster(); }
void wait_for_cluster(const std::source_location& place) {
  Multiprocessor::current->wait_for_cluster(place);
}
unsigned cluster_rank() { return Multiprocessor::current->block().rank; }
unsigned cluster_size() { return Multiprocessor::current->cluster_size(); }

bool gather_warp(unsigned mask, const char* what, const std::source_location& place, void* data,
                 WarpData& all) {
  return Multiprocessor::current->gather_warp(mask, what, place, data, all);
}

void release_warp(unsigned mask) { Multiprocessor::current->release_warp(mask); }

unsigned lane() { return Multiprocessor::current->lane(); }
unsigned thread_of_block() { return Multiprocessor::current->thread_of_block(); }
unsigned block_size() {
  return static_cast<unsigned>(Multiprocessor::current->block().threads.size());
}

void* this_thread() { return &Multiprocessor::current->running(); }
void sleep(const char* what, const std::source_location& place) {
  Multiprocessor::current->sleep(what, place);
}
void wake(void* thread) { Multiprocessor::current->wake(*static_cast<Thread*>(thread)); }

void begin_shared() { Multiprocessor::current->begin_shared(); }

std::byte* dynamic_shared_memory() { return Multiprocessor::current->block().shared.data(); }
std::byte* dynamic_shared_memory_of(unsigned rank) {
  return Multiprocessor::current->block_of(rank).shared.data();
}

std::size_t shared_offset(const void* memory) {
  return static_cast<std::size_t>(static_cast<const std::byte*>(memory) - dynamic_shared_memory());
}

bool is_shared(const void* memory, std::size_t bytes) {
  return Multiprocessor::current->is_shared(memory, bytes);
}

void copy_later(void* shared, const void* global, std::size_t bytes, std::size_t valid) {
  Multiprocessor& multiprocessor = *Multiprocessor::current;
  if (!multiprocessor.is_shared(shared, bytes)) fail("copies to memory that is not shared memory");
  if (valid > 0 && multiprocessor.is_shared(global, valid)) fail("copies from shared memory");
  if (reinterpret_cast<std::uintptr_t>(shared) % bytes != 0 ||
      (valid > 0 && reinterpret_cast<std::uintptr_t>(global) % bytes != 0))
    fail("copies " + std::to_string(bytes) + " bytes at an address that is no multiple of them");
  if (valid > bytes) fail("copies more valid bytes than the copy has");
  std::memset(shared, nan_byte, bytes);
  multiprocessor.running().ungrouped.push_back({shared, global, bytes, valid});
}

void group_copies() {
  Thread& thread = Multiprocessor::current->running();
  thread.groups.push_back(std::exchange(thread.ungrouped, {}));
}

void finish_copies(std::size_t pending_groups) {
  auto& groups = Multiprocessor::current->running().groups;
  while (groups.size() > pending_groups) {
    for (const Copy& copy : groups.front()) copy.take_effect();
    groups.pop_front();
  }
}

std::function<void()> take_copies() {
  group_copies();
  return [groups = std::exchange(Multiprocessor::current->running().groups, {})] {
    for (const std::vector<Copy>& group : groups)
      for (const Copy& copy : group) copy.take_effect();
  };
}

}  // namespace stepladder::simt

#include "tests/simt/multiprocessor.hpp"

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

#include "harness/random.hpp"
#include "tests/simt/fiber.hpp"
#include "tests/simt/hopper.hpp"

namespace stepladder::simt {
namespace {

constexpr std::size_t stack_bytes = std::size_t{128} << 10;
constexpr int garbage = 0xff;  // a byte of it; four are a NaN

Random order(1);

std::string text(const std::source_location& place) {
  return std::string(place.file_name()) + ":" + std::to_string(place.line());
}

bool same(const std::source_location& a, const std::source_location& b) {
  return a.line() == b.line() && a.column() == b.column() &&
         std::strcmp(a.file_name(), b.file_name()) == 0;
}

std::string text(const uint3& index) {
  return "(" + std::to_string(index.x) + ", " + std::to_string(index.y) + ", " +
         std::to_string(index.z) + ")";
}

uint3 unravel(std::size_t index, const dim3& size) {
  return {static_cast<unsigned>(index % size.x), static_cast<unsigned>(index / size.x % size.y),
          static_cast<unsigned>(index / size.x / size.y)};
}

// __shared__ variables are thread_local and blocks run on a thread of their own: they are the part of
// the program in that thread's local storage.
std::span<std::byte> thread_local_storage() {
  std::span<std::byte> found;
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* result) {
        for (int i = 0; i < object->dlpi_phnum; ++i)
          if (object->dlpi_phdr[i].p_type == PT_TLS)
            *static_cast<std::span<std::byte>*>(result) = {
                static_cast<std::byte*>(object->dlpi_tls_data), object->dlpi_phdr[i].p_memsz};
        return 1;  // the first object is the program; no more
      },
      &found);
  return found;
}

struct Copy {
  void* shared;
  const void* global;
  std::size_t bytes, valid;

  void take_effect() const {
    if (valid > 0) std::memcpy(shared, global, valid);  // of none, global may be null
    std::memset(static_cast<std::byte*>(shared) + valid, 0, bytes - valid);
  }
};

enum class State { ready, at_barrier, in_warp, asleep, ended };

struct Thread {
  Fiber fiber;
  uint3 index;
  State state = State::ready;
  // where and for whom it waits
  std::source_location place;
  const char* what = "";
  unsigned mask = 0;
  void* data = nullptr;
  // copies of its own that have not taken effect
  std::vector<Copy> ungrouped;
  std::deque<std::vector<Copy>> groups;
};

// Dynamic shared memory between zones that must stay as they are.
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
    std::memset(data_, garbage, bytes_);
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

class Multiprocessor {
 public:
  explicit Multiprocessor(const Launch& launch)
      : launch_(launch),
        threads_(std::size_t{launch.block.x} * launch.block.y * launch.block.z),
        shared_variables_(thread_local_storage()),
        dynamic_shared_(launch.shared_bytes) {
    // Kept from launch to launch: fresh memory would cost a page fault for each thread.
    static const std::unique_ptr<std::byte[]> all_stacks(
        new std::byte[most_threads * stack_stride]);
    stacks_ = all_stacks.get();
  }

  void run_block(const uint3& block) {
    blockIdx = block;
    shared_is_filled_ = false;
    dynamic_shared_.reset();
    ready_.clear();
    for (std::size_t i = 0; i < threads_.size(); ++i) {
      Thread& thread = threads_[i];
      const std::span<std::byte> stack(stacks_ + i * stack_stride, stack_stride);
      std::ranges::copy(canary, stack.begin());
      thread.fiber.prepare(stack.subspan(canary.size()), [] { current->run_thread(); });
      thread.index = unravel(i, launch_.block);
      thread.state = State::ready;
      thread.ungrouped.clear();
      thread.groups.clear();
      ready_.push_back(&thread);
    }
    at_barrier_ = 0;
    begin_background();
    while (!ready_.empty() && error_ == nullptr) {
      std::swap(ready_[draw(ready_.size())], ready_.back());
      running_ = ready_.back();
      ready_.pop_back();
      threadIdx = running_->index;
      switch_fiber(scheduler_, running_->fiber);
    }
    if (error_ != nullptr) std::rethrow_exception(error_);
    expect_all_ended();
    expect_no_background();
    expect_stacks_held();
    if (!dynamic_shared_.is_intact())
      throw SimtError("block " + text(blockIdx) + " wrote out of the bounds of its " +
                      std::to_string(dynamic_shared_.bytes()) + " bytes of dynamic shared memory");
  }

  Thread& running() { return *running_; }
  std::byte* dynamic_shared() const { return dynamic_shared_.data(); }

  void meet_block(const std::source_location& place) {
    if (at_barrier_ == 0) first_at_barrier_ = running_;
    const Thread& first = *first_at_barrier_;
    running_->place = place;
    if (!same(first.place, place))
      fail("waits at the barrier at " + text(place) + " and thread " + text(first.index) +
           " at another, at " + text(first.place));
    if (++at_barrier_ < threads_.size()) return wait(State::at_barrier);
    at_barrier_ = 0;
    for (Thread& other : threads_)
      if (&other != running_) wake(other);
  }

  bool meet_warp(unsigned mask, const char* what, const std::source_location& place, void* data,
                 WarpData& everybody) {
    if ((mask >> lane() & 1U) == 0)
      fail(std::string("calls ") + what + " with a mask that leaves itself out, at " + text(place));
    running_->place = place;
    running_->what = what;
    running_->mask = mask;
    running_->data = data;
    everybody.fill(nullptr);
    everybody[lane()] = data;
    bool all_here = true;
    for_lanes(mask, [&](std::size_t i, const Thread& other) {
      if (&other == running_) return;
      const bool is_here = other.state == State::in_warp && other.mask == mask;
      if (is_here && (std::strcmp(other.what, what) != 0 || !same(other.place, place)))
        fail(std::string("calls ") + what + " at " + text(place) + " and lane " +
             std::to_string(i) + " of its warp " + other.what + " at " + text(other.place));
      all_here &= is_here;
      everybody[i] = other.data;
    });
    if (!all_here) wait(State::in_warp);
    return all_here;
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

  unsigned thread_of_block() const { return static_cast<unsigned>(running_ - threads_.data()); }
  unsigned lane() const { return thread_of_block() % 32; }
  unsigned block_size() const { return static_cast<unsigned>(threads_.size()); }

  void begin_shared() {
    if (std::exchange(shared_is_filled_, true)) return;
    std::memset(shared_variables_.data(), garbage, shared_variables_.size());
  }

  bool is_shared(const void* memory, std::size_t bytes) const {
    const auto* first = static_cast<const std::byte*>(memory);
    const auto holds = [&](std::span<const std::byte> range) {
      return std::less_equal<>{}(range.data(), first) &&
             std::less_equal<>{}(first + bytes, range.data() + range.size());
    };
    return holds(shared_variables_) || holds({dynamic_shared_.data(), dynamic_shared_.bytes()});
  }

  static Multiprocessor* current;

 private:
  // A little more than a power of two, so that the tops of the stacks do not share their sets of the
  // cache. Who uses a whole stack spoils the canary at its end.
  static constexpr std::size_t stack_stride = stack_bytes + 192;
  static constexpr std::array canary{std::byte{0xca}, std::byte{0x4a}, std::byte{0x12},
                                     std::byte{0xe5}, std::byte{0x90}, std::byte{0x3b},
                                     std::byte{0x77}, std::byte{0xd8}};

  [[noreturn]] void run_thread() {
    arrive_from(scheduler_);
    try {
      launch_.thread();
    } catch (...) {
      if (error_ == nullptr) error_ = std::current_exception();
    }
    running_->state = State::ended;
    switch_fiber(running_->fiber, scheduler_);
    std::terminate();  // nobody goes on with a thread that has ended
  }

  void wait(State state) {
    Thread& me = *running_;
    me.state = state;
    switch_fiber(me.fiber, scheduler_);
  }

  template <class Visit>
  void for_lanes(unsigned mask, const Visit& visit) {
    const std::size_t first = static_cast<std::size_t>(running_ - threads_.data()) / 32 * 32;
    for (std::size_t i = 0; i < 32 && first + i < threads_.size(); ++i)
      if ((mask >> i & 1U) != 0) visit(i, threads_[first + i]);
  }

  void expect_all_ended() const {
    std::size_t ended = 0;
    const Thread* waiting = nullptr;
    for (const Thread& thread : threads_)
      if (thread.state == State::ended)
        ++ended;
      else
        waiting = &thread;
    if (waiting == nullptr) return;
    throw SimtError("block " + text(blockIdx) + " waits for ever: thread " + text(waiting->index) +
                    (waiting->state == State::at_barrier ? std::string(" at the barrier")
                     : waiting->state == State::asleep
                         ? std::string(" for ") + waiting->what
                         : std::string(" for its warp in ") + waiting->what) +
                    " at " + text(waiting->place) + "; " + std::to_string(at_barrier_) + " of " +
                    std::to_string(threads_.size()) + " threads are at a barrier, " +
                    std::to_string(ended) + " have ended");
  }

  void expect_stacks_held() const {
    for (std::size_t i = 0; i < threads_.size(); ++i)
      if (!std::equal(canary.begin(), canary.end(), stacks_ + i * stack_stride))
        throw SimtError("a thread's stack of " + std::to_string(stack_bytes) +
                        " bytes was not enough");
  }

  const Launch& launch_;
  std::vector<Thread> threads_;
  std::byte* stacks_;
  std::span<std::byte> shared_variables_;
  GuardedShared dynamic_shared_;
  bool shared_is_filled_ = false;
  Fiber scheduler_;
  Thread* running_ = nullptr;
  std::vector<Thread*> ready_;
  std::size_t at_barrier_ = 0;
  const Thread* first_at_barrier_ = nullptr;
  std::exception_ptr error_;
};

Multiprocessor* Multiprocessor::current = nullptr;

}  // namespace

void seed_order(unsigned long long seed) { order = Random(seed); }

std::size_t draw(std::size_t count) {
  return static_cast<std::size_t>(order.integer(0, static_cast<std::int64_t>(count) - 1));
}

void run(const Launch& launch) {
  std::vector<std::size_t> blocks(std::size_t{launch.grid.x} * launch.grid.y * launch.grid.z);
  std::iota(blocks.begin(), blocks.end(), std::size_t{0});
  for (std::size_t i = blocks.size(); i > 1; --i) std::swap(blocks[i - 1], blocks[draw(i)]);

  std::exception_ptr error;
  std::thread([&] {
    Multiprocessor multiprocessor(launch);
    Multiprocessor::current = &multiprocessor;
    gridDim = launch.grid;
    blockDim = launch.block;
    try {
      for (const std::size_t block : blocks) multiprocessor.run_block(unravel(block, launch.grid));
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

void meet_block(const std::source_location& place) { Multiprocessor::current->meet_block(place); }

bool meet_warp(unsigned mask, const char* what, const std::source_location& place, void* data,
               WarpData& everybody) {
  return Multiprocessor::current->meet_warp(mask, what, place, data, everybody);
}

void release_warp(unsigned mask) { Multiprocessor::current->release_warp(mask); }

unsigned lane() { return Multiprocessor::current->lane(); }
unsigned thread_of_block() { return Multiprocessor::current->thread_of_block(); }
unsigned block_size() { return Multiprocessor::current->block_size(); }

void* this_thread() { return &Multiprocessor::current->running(); }
void sleep(const char* what, const std::source_location& place) {
  Multiprocessor::current->sleep(what, place);
}
void wake(void* thread) { Multiprocessor::current->wake(*static_cast<Thread*>(thread)); }

void begin_shared() { Multiprocessor::current->begin_shared(); }

std::byte* dynamic_shared_memory() { return Multiprocessor::current->dynamic_shared(); }

bool is_shared(const void* memory, std::size_t bytes) {
  return Multiprocessor::current->is_shared(memory, bytes);
}

void copy_later(void* shared, const void* global, std::size_t bytes, std::size_t valid) {
  Multiprocessor& multiprocessor = *Multiprocessor::current;
  if (!multiprocessor.is_shared(shared, bytes)) fail("copies to what is not shared memory");
  if (valid > 0 && multiprocessor.is_shared(global, valid)) fail("copies from shared memory");
  if (reinterpret_cast<std::uintptr_t>(shared) % bytes != 0 ||
      (valid > 0 && reinterpret_cast<std::uintptr_t>(global) % bytes != 0))
    fail("copies " + std::to_string(bytes) + " bytes, and an address is no multiple of that");
  if (valid > bytes) fail("copies more bytes than a copy has");
  std::memset(shared, garbage, bytes);
  multiprocessor.running().ungrouped.push_back({shared, global, bytes, valid});
}

void group_copies() {
  Thread& thread = Multiprocessor::current->running();
  thread.groups.push_back(std::exchange(thread.ungrouped, {}));
}

void finish_copies(std::size_t newest_groups_left) {
  auto& groups = Multiprocessor::current->running().groups;
  while (groups.size() > newest_groups_left) {
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

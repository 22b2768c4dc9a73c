#include "tests/simt/hopper.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/simt/multiprocessor.hpp"

namespace stepladder::simt {
namespace {

constexpr int nan_byte = 0xff;  // four of them are a NaN
constexpr int box_columns = 32;

// The 128-byte swizzle: bits 4 to 6 of a shared memory address are XORed with bits 7 to 9.
std::byte* swizzled_address(std::size_t address) {
  return dynamic_shared_memory() + (address ^ (address >> 7U & 7U) << 4U);
}

// --- mbarriers and the copies that report to them ------------------------------------------------

struct BoxCopy {
  std::size_t to;  // from the start of dynamic shared memory
  Box box;

  std::size_t bytes() const {
    return static_cast<std::size_t>(box.box_rows) * box_columns * sizeof(float);
  }
  void operator()() const {
    for (int i = 0; i < box.box_rows; ++i)
      for (int j = 0; j < box_columns; ++j) {
        const std::int64_t row = box.row + i, column = box.column + j;
        const bool is_inside = 0 <= row && row < box.rows && 0 <= column && column < box.columns;
        const float value = is_inside ? box.matrix[row * box.pitch + column] : 0.0F;
        const auto offset = static_cast<std::size_t>(i * box_columns + j) * sizeof(float);
        std::memcpy(swizzled_address(to + offset), &value, sizeof(float));
      }
  }
};

// A copy in flight, and what it reports to the barrier on completion.
struct PendingCopy {
  std::function<void()> take_effect;
  std::size_t bytes;
  unsigned arrivals;
};

struct Mbarrier {
  unsigned rank;      // of its block
  unsigned arrivals;  // of each phase
  unsigned pending;   // arrivals of the current phase
  std::int64_t pending_bytes = 0;
  unsigned parity = 0;
  std::vector<PendingCopy> copies{};
  std::vector<void*> sleepers{};

  void wake_sleepers() {
    for (void* thread : std::exchange(sleepers, {})) wake(thread);
  }
  void arrive(unsigned count, std::int64_t bytes) {
    if (pending < count) fail("arrives at an mbarrier more often than its phase expects");
    pending -= count;
    pending_bytes += bytes;
    if (pending != 0 || pending_bytes != 0) return;
    parity ^= 1U;
    pending = arrivals;
    wake_sleepers();
  }
};

std::map<const void*, Mbarrier> barriers;

Mbarrier& barrier_at(const void* address) {
  const auto found = barriers.find(address);
  if (found == barriers.end()) fail("uses an mbarrier that is not initialised");
  return found->second;
}

// --- products of warpgroups ----------------------------------------------------------------------

constexpr unsigned warpgroup_threads = 128;

struct Product {
  std::uint64_t b;
  std::size_t columns;
  std::source_location place;
  std::array<float*, warpgroup_threads> d{};
  std::array<const std::uint32_t*, warpgroup_threads> a{};
  unsigned started = 0;           // number of threads that have issued it
  std::array<bool, 4> is_done{};  // per warp, for its 16 rows
};

// The values of accumulators after the pending products; the registers hold NaN until then.
using Accumulators = std::vector<float>;

struct Thread {
  std::size_t started = 0, finished = 0;  // products
  std::deque<std::size_t> groups{};       // unfinished: products started before the end of each
  bool is_fenced = false;
  std::map<float*, Accumulators> accumulators{};  // by the address of the registers
};

struct Warpgroup {
  std::deque<Product> products;
  std::array<Thread, warpgroup_threads> threads;
  std::vector<void*> sleepers;
};

std::map<std::pair<unsigned, unsigned>, Warpgroup> warpgroups;  // by block rank and index

Warpgroup& own_warpgroup() {
  return warpgroups[{cluster_rank(), thread_of_block() / warpgroup_threads}];
}

// Element [column, l] of Bᵀ in the shared memory matrix of the descriptor.
double operand_b(std::uint64_t descriptor, std::size_t column, std::size_t l) {
  const auto field = [&](unsigned first) {
    return static_cast<std::size_t>(descriptor >> first & 0x3fffU) << 4U;
  };
  const bool is_supported = descriptor >> 62U == 1 && (descriptor >> 49U & 7U) == 0;
  if (!is_supported) fail("has a matrix descriptor with another layout than the 128-byte swizzle");
  const std::size_t start = field(0), eight_rows = field(32);
  const std::byte* at =
      swizzled_address(start + column / 8 * eight_rows + column % 8 * 128 + l * sizeof(float));
  if (!is_shared(at, sizeof(float))) fail("multiplies an operand outside shared memory");
  std::uint32_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  return double{std::bit_cast<float>(bits & ~0x1fffU)};
}

// The 16 rows of one warp. Products are exact and their sum is truncated, not rounded: see mma.hpp.
void multiply(const Product& product, Warpgroup& warpgroup, unsigned warp) {
  double a[16][8], b[128][8];
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned e = 0; e < 4; ++e) {
      const std::uint32_t bits = product.a[warp * 32 + lane][e];
      a[lane / 4 + e % 2 * 8][lane % 4 + e / 2 * 4] = double{std::bit_cast<float>(bits & ~0x1fffU)};
    }
  for (std::size_t column = 0; column < product.columns; ++column)
    for (std::size_t l = 0; l < 8; ++l) b[column][l] = operand_b(product.b, column, l);
  for (unsigned lane = 0; lane < 32; ++lane) {
    const unsigned thread = warp * 32 + lane;
    Accumulators& d = warpgroup.threads[thread].accumulators.at(product.d[thread]);
    for (unsigned i = 0; i < product.columns / 2; ++i) {
      const unsigned row = lane / 4 + i / 2 % 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
      double sum = d[i];
      for (int l = 0; l < 8; ++l) sum += a[row][l] * b[column][l];
      auto truncated = static_cast<float>(sum);
      if (std::abs(double{truncated}) > std::abs(sum)) truncated = std::nextafter(truncated, 0.0F);
      d[i] = truncated;
    }
  }
}

}  // namespace

void begin_async() {
  barriers.clear();
  warpgroups.clear();
}

void end_async(unsigned rank) {
  for (const auto& [address, barrier] : barriers)
    if (barrier.rank == rank && !barrier.copies.empty())
      throw SimtError("a block ends while a copy to it is in flight");
  for (const auto& [place, warpgroup] : warpgroups)
    if (place.first == rank && !warpgroup.products.empty())
      throw SimtError("a block ends before it has waited for its wgmma products");
}

void initialise_barrier(const void* barrier, unsigned arrivals) {
  if (!is_shared(barrier, sizeof(std::uint64_t)))
    fail("initialises an mbarrier outside shared memory");
  barriers[barrier] = {.rank = cluster_rank(), .arrivals = arrivals, .pending = arrivals};
}

void arrive_at_barrier(const void* barrier, std::size_t bytes) {
  barrier_at(barrier).arrive(1, static_cast<std::int64_t>(bytes));
}

void arrive_at_barrier_of(unsigned rank, const void* barrier) {
  barrier_at(dynamic_shared_memory_of(rank) + shared_offset(barrier)).arrive(1, 0);
}

void arrive_after_copies(const void* barrier) {
  Mbarrier& b = barrier_at(barrier);
  b.copies.push_back({take_copies(), 0, 1});
  b.wake_sleepers();
}

void wait_at_barrier(const void* barrier, unsigned parity, const std::source_location& place) {
  Mbarrier& b = barrier_at(barrier);
  while (b.parity == parity) {
    if (b.copies.empty()) {
      b.sleepers.push_back(this_thread());
      sleep("a phase of an mbarrier", place);
    } else {
      const PendingCopy copy = std::move(b.copies.back());
      b.copies.pop_back();
      copy.take_effect();
      b.arrive(copy.arrivals, -static_cast<std::int64_t>(copy.bytes));
    }
  }
}

void load_box_later(float* to, const Box& box, const void* barrier, unsigned mask) {
  const BoxCopy copy{shared_offset(to), box};
  if (!is_shared(to, copy.bytes())) fail("copies to memory that is not shared memory");
  if (copy.to % 1024 != 0)
    fail("copies a swizzled box to an address that is no multiple of 1024 bytes");
  if (mask == 0) fail("copies a box with an empty mask of blocks");
  for (unsigned rank = 0; mask >> rank != 0; ++rank) {
    if ((mask >> rank & 1U) == 0) continue;
    std::byte* const shared = dynamic_shared_memory_of(rank);
    Mbarrier& full = barrier_at(shared + shared_offset(barrier));
    std::memset(shared + copy.to, nan_byte, copy.bytes());
    full.copies.push_back({copy, copy.bytes(), 0});
    full.wake_sleepers();
  }
}

void fence_products() {
  own_warpgroup().threads[thread_of_block() % warpgroup_threads].is_fenced = true;
}

void multiply_later(std::span<float> d, const std::uint32_t (&a)[4], std::uint64_t b,
                    const std::source_location& place) {
  const unsigned number = thread_of_block() / warpgroup_threads;
  const unsigned thread = thread_of_block() % warpgroup_threads;
  if ((number + 1) * warpgroup_threads > block_size())
    fail("multiplies matrices in a warpgroup of fewer than 128 threads");
  Warpgroup& warpgroup = own_warpgroup();
  Thread& me = warpgroup.threads[thread];
  if (!me.is_fenced) fail("multiplies matrices without a preceding fence");
  if (me.started == warpgroup.products.size())
    warpgroup.products.push_back({b, 2 * d.size(), place});
  Product& product = warpgroup.products[me.started++];
  if (product.b != b || product.place.line() != place.line())
    fail("multiplies other matrices than the rest of its warpgroup");
  product.d[thread] = d.data();
  product.a[thread] = a;
  if (!me.accumulators.contains(d.data())) {
    me.accumulators[d.data()] = Accumulators(d.begin(), d.end());
    std::memset(d.data(), nan_byte, d.size_bytes());
  }
  if (++product.started == warpgroup_threads)
    for (void* sleeper : std::exchange(warpgroup.sleepers, {})) wake(sleeper);
}

void finish_products(std::size_t in_flight, const std::source_location& place) {
  Warpgroup& warpgroup = own_warpgroup();
  const unsigned thread = thread_of_block() % warpgroup_threads, warp = thread / 32;
  Thread& me = warpgroup.threads[thread];
  me.groups.push_back(me.started);
  std::size_t end = me.finished;
  for (; me.groups.size() > in_flight; me.groups.pop_front()) end = me.groups.front();
  for (; me.finished < end; ++me.finished) {
    Product& product = warpgroup.products[me.finished];
    while (product.started < warpgroup_threads) {
      warpgroup.sleepers.push_back(this_thread());
      sleep("the rest of its warpgroup to multiply", place);
    }
    if (!std::exchange(product.is_done[warp], true)) multiply(product, warpgroup, warp);
  }
  me.is_fenced = false;
  if (me.finished < me.started) return;  // the accumulators are still being added to
  for (const auto& [d, values] : me.accumulators) std::ranges::copy(values, d);
  me.accumulators.clear();
  const std::size_t all = warpgroup.products.size();
  if (std::ranges::all_of(warpgroup.threads, [&](const Thread& t) { return t.finished == all; })) {
    warpgroup.products.clear();
    for (Thread& t : warpgroup.threads) t.started = t.finished = 0;
  }
}

}  // namespace stepladder::simt

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

constexpr int garbage = 0xff;  // a byte of it; four are a NaN
constexpr int box_columns = 32;

// The 128-byte swizzle: bits 4 to 6 of an address in shared memory are changed by bits 7 to 9.
std::byte* swizzled_place(std::size_t address) {
  return dynamic_shared_memory() + (address ^ (address >> 7U & 7U) << 4U);
}

// --- barriers and the copies that report to them -------------------------------------------------

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
        std::memcpy(swizzled_place(to + offset), &value, sizeof(float));
      }
  }
};

// On its way: what it then does, and what it reports.
struct Arrival {
  std::function<void()> take_effect;
  std::size_t bytes;
  unsigned arrivals;
};

struct Mbarrier {
  unsigned rank;               // of the block whose it is
  unsigned arrivals, missing;  // of each phase, of this one
  std::int64_t missing_bytes = 0;
  unsigned parity = 0;
  std::vector<Arrival> copies{};
  std::vector<void*> sleepers{};

  void wake_sleepers() {
    for (void* thread : std::exchange(sleepers, {})) wake(thread);
  }
  void arrive(unsigned count, std::int64_t bytes) {
    if (missing < count) fail("arrives at a barrier once more than its phase has arrivals");
    missing -= count;
    missing_bytes += bytes;
    if (missing != 0 || missing_bytes != 0) return;
    parity ^= 1U;
    missing = arrivals;
    wake_sleepers();
  }
};

std::map<const void*, Mbarrier> barriers;

Mbarrier& barrier_at(const void* address) {
  const auto found = barriers.find(address);
  if (found == barriers.end()) fail("uses a barrier that nobody has initialised");
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
  unsigned started = 0;           // by so many threads
  std::array<bool, 4> is_done{};  // for each warp's 16 rows
};

// Sums that products will have made, while the thread's own hold NaN.
using Sums = std::vector<float>;

struct Thread {
  std::size_t started = 0, finished = 0;  // products
  bool is_fenced = false;
  std::map<float*, Sums> sums{};
};

struct Warpgroup {
  std::deque<Product> products;
  std::array<Thread, warpgroup_threads> threads;
  std::vector<void*> sleepers;
};

std::map<std::pair<unsigned, unsigned>, Warpgroup> warpgroups;  // by block and number

Warpgroup& own_warpgroup() {
  return warpgroups[{cluster_rank(), thread_of_block() / warpgroup_threads}];
}

// Element [column, l] of Bᵀ in shared memory, as the descriptor says.
double factor_b(std::uint64_t descriptor, std::size_t column, std::size_t l) {
  const auto field = [&](unsigned first) {
    return static_cast<std::size_t>(descriptor >> first & 0x3fffU) << 4U;
  };
  const bool is_known = descriptor >> 62U == 1 && (descriptor >> 49U & 7U) == 0;
  if (!is_known) fail("has a matrix descriptor of another form than the 128-byte swizzle");
  const std::size_t start = field(0), eight_rows = field(32);
  const std::byte* at =
      swizzled_place(start + column / 8 * eight_rows + column % 8 * 128 + l * sizeof(float));
  if (!is_shared(at, sizeof(float))) fail("multiplies with what is not shared memory");
  std::uint32_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  return double{std::bit_cast<float>(bits & ~0x1fffU)};
}

// The 16 rows of one warp. Products are exact and their sum is cut, not rounded: see cuda_mma.hpp.
void multiply(const Product& product, Warpgroup& warpgroup, unsigned warp) {
  double a[16][8], b[128][8];
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned e = 0; e < 4; ++e) {
      const std::uint32_t bits = product.a[warp * 32 + lane][e];
      a[lane / 4 + e % 2 * 8][lane % 4 + e / 2 * 4] = double{std::bit_cast<float>(bits & ~0x1fffU)};
    }
  for (std::size_t column = 0; column < product.columns; ++column)
    for (std::size_t l = 0; l < 8; ++l) b[column][l] = factor_b(product.b, column, l);
  for (unsigned lane = 0; lane < 32; ++lane) {
    const unsigned thread = warp * 32 + lane;
    Sums& sums = warpgroup.threads[thread].sums.at(product.d[thread]);
    for (unsigned i = 0; i < product.columns / 2; ++i) {
      const unsigned row = lane / 4 + i / 2 % 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
      double sum = sums[i];
      for (int l = 0; l < 8; ++l) sum += a[row][l] * b[column][l];
      auto cut = static_cast<float>(sum);
      if (std::abs(double{cut}) > std::abs(sum)) cut = std::nextafter(cut, 0.0F);
      sums[i] = cut;
    }
  }
}

}  // namespace

void begin_background() {
  barriers.clear();
  warpgroups.clear();
}

void end_background(unsigned rank) {
  for (const auto& [address, barrier] : barriers)
    if (barrier.rank == rank && !barrier.copies.empty())
      throw SimtError("a block ends while a copy is on its way to it");
  for (const auto& [place, warpgroup] : warpgroups)
    if (place.first == rank && !warpgroup.products.empty())
      throw SimtError("a block ends while products are made that nobody waited for");
}

void initialise_barrier(const void* barrier, unsigned arrivals) {
  if (!is_shared(barrier, sizeof(std::uint64_t))) fail("makes a barrier outside shared memory");
  barriers[barrier] = {.rank = cluster_rank(), .arrivals = arrivals, .missing = arrivals};
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
      const Arrival copy = std::move(b.copies.back());
      b.copies.pop_back();
      copy.take_effect();
      b.arrive(copy.arrivals, -static_cast<std::int64_t>(copy.bytes));
    }
  }
}

void load_box_later(float* to, const Box& box, const void* barrier, unsigned mask) {
  const BoxCopy copy{shared_offset(to), box};
  if (!is_shared(to, copy.bytes())) fail("copies to what is not shared memory");
  if (copy.to % 1024 != 0) fail("copies a swizzled box to what is no multiple of 1024 bytes");
  if (mask == 0) fail("copies a box to no block of its cluster");
  for (unsigned rank = 0; mask >> rank != 0; ++rank) {
    if ((mask >> rank & 1U) == 0) continue;
    std::byte* const shared = dynamic_shared_memory_of(rank);
    Mbarrier& told = barrier_at(shared + shared_offset(barrier));
    std::memset(shared + copy.to, garbage, copy.bytes());
    told.copies.push_back({copy, copy.bytes(), 0});
    told.wake_sleepers();
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
    fail("multiplies matrices in a warpgroup of less than 128 threads");
  Warpgroup& warpgroup = own_warpgroup();
  Thread& me = warpgroup.threads[thread];
  if (!me.is_fenced) fail("multiplies matrices without a fence before");
  if (me.started == warpgroup.products.size())
    warpgroup.products.push_back({b, 2 * d.size(), place});
  Product& product = warpgroup.products[me.started++];
  if (product.b != b || product.place.line() != place.line())
    fail("multiplies another matrix than the rest of its warpgroup");
  product.d[thread] = d.data();
  product.a[thread] = a;
  if (!me.sums.contains(d.data())) {
    me.sums[d.data()] = Sums(d.begin(), d.end());
    std::memset(d.data(), garbage, d.size_bytes());
  }
  if (++product.started == warpgroup_threads)
    for (void* sleeper : std::exchange(warpgroup.sleepers, {})) wake(sleeper);
}

void finish_products(const std::source_location& place) {
  Warpgroup& warpgroup = own_warpgroup();
  const unsigned thread = thread_of_block() % warpgroup_threads, warp = thread / 32;
  Thread& me = warpgroup.threads[thread];
  for (; me.finished < me.started; ++me.finished) {
    Product& product = warpgroup.products[me.finished];
    while (product.started < warpgroup_threads) {
      warpgroup.sleepers.push_back(this_thread());
      sleep("the rest of its warpgroup to multiply", place);
    }
    if (!std::exchange(product.is_done[warp], true)) multiply(product, warpgroup, warp);
  }
  for (const auto& [d, sums] : me.sums) std::ranges::copy(sums, d);
  me.sums.clear();
  me.is_fenced = false;
  const std::size_t all = warpgroup.products.size();
  if (std::ranges::all_of(warpgroup.threads, [&](const Thread& t) { return t.finished == all; })) {
    warpgroup.products.clear();
    for (Thread& t : warpgroup.threads) t.started = t.finished = 0;
  }
}

}  // namespace stepladder::simt

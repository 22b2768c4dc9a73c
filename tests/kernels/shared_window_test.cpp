// The protocols of the shared-memory rungs, run by threads on plain memory in place of processes on
// a window. Built with -fsanitize=thread, this detects every access that the flags do not order.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "harness/problem/random.hpp"
#include "kernels/all_reduce/mpi/shared_window/exchange.hpp"
#include "kernels/common/cpu/aligned.hpp"

namespace stepladder::all_reduce {
namespace {

using namespace std::chrono_literals;

// The areas of all ranks: zeros, aligned to pages, as a window provides them.
class Areas {
 public:
  Areas(int ranks, const ExchangeSizes& sizes)
      : bytes_(round_up(Exchange::area_bytes(sizes), page)),
        memory_(aligned_array<std::byte>(bytes_ * static_cast<std::size_t>(ranks) + page)) {
    const auto at = reinterpret_cast<std::uintptr_t>(memory_.get());
    std::byte* const first = memory_.get() + (round_up(at, page) - at);
    std::memset(first, 0, bytes_ * static_cast<std::size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank)
      areas_.push_back(first + bytes_ * static_cast<std::size_t>(rank));
  }
  const std::vector<std::byte*>& all() const { return areas_; }

 private:
  static constexpr std::size_t page = 4096;
  std::size_t bytes_;
  AlignedArray<std::byte> memory_;
  std::vector<std::byte*> areas_;
};

template <class Body>
void on_threads(int ranks, const Body& body) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back([&body, rank] { body(rank); });
  for (std::thread& thread : threads) thread.join();
}

constexpr Patience patience{.polls = 100, .limit = 20s};

enum class Protocol { lines, slots, slots_in_slices, slices };

struct Call {
  Protocol protocol;
  std::int64_t count;
  bool mean, in_place;
};

constexpr float guard_value = -77777.0F;

// The vectors of one rank, between guard zones, at one offset from a cache line on every rank.
struct Vectors {
  static constexpr std::int64_t guard = 16;
  AlignedArray<float> memory;
  std::int64_t longest, shift;
  Vectors(std::int64_t longest_count, std::int64_t floats_from_line)
      : memory(aligned_array<float>(static_cast<std::size_t>(2 * (longest_count + 4 * guard)))),
        longest(longest_count),
        shift(floats_from_line) {
    clear();
  }
  std::int64_t size() const { return 2 * (round_up(longest, 16) + 3 * guard); }
  void clear() { std::fill_n(memory.get(), size(), guard_value); }
  float* input() { return memory.get() + guard + shift % guard; }
  float* output() { return input() + round_up(longest, 16) + 2 * guard; }
  bool changed_outside(const float* from, std::int64_t count) const {
    for (const float* at = from - 16; at < from; ++at)
      if (*at != guard_value) return true;
    for (const float* at = from + count; at < from + count + 14; ++at)
      if (*at != guard_value) return true;
    return false;
  }
};

float value(std::uint64_t call, int rank, std::int64_t i) {
  std::uint64_t x = call * 1000003 + static_cast<std::uint64_t>(rank) * 7919 +
                    static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9U;
  return static_cast<float>(x >> 40) * 0x1p-23F - 1.0F;
}

// In rank order, in fp32: what every rank must have, to the bit.
float expected(std::uint64_t call, int ranks, std::int64_t i, bool mean) {
  float sum = value(call, 0, i);
  for (int rank = 1; rank < ranks; ++rank) sum += value(call, rank, i);
  return mean ? sum / static_cast<float>(ranks) : sum;
}

template <bool mean>
void reduce(Exchange& exchange, const Call& call, const float* input, float* output,
            const std::vector<const float*>& inputs, const std::vector<float*>& outputs) {
  switch (call.protocol) {
    case Protocol::lines:
      return exchange.through_lines<mean>(input, output, call.count);
    case Protocol::slots:
      return exchange.through_slots<mean>(input, output, call.count);
    case Protocol::slots_in_slices:
      return exchange.through_slots_in_slices<mean>(input, output, call.count);
    case Protocol::slices:
      return exchange.in_slices<mean>(inputs.data(), outputs.data(), call.count);
  }
}

// Makes the calls, one after another without further synchronization, and counts wrong elements.
std::int64_t faults(const std::vector<Call>& calls, int ranks, const ExchangeSizes& sizes,
                    std::int64_t shift) {
  std::int64_t longest = 1;
  for (const Call& call : calls) longest = std::max(longest, call.count);
  const Areas areas(ranks, sizes);
  // Two sets in turn: a rank may fill its vectors for the next call while others read the last.
  std::vector<Vectors> vectors;
  for (int i = 0; i < 2 * ranks; ++i) vectors.emplace_back(longest, shift);
  std::vector<std::int64_t> wrong(static_cast<std::size_t>(ranks));
  on_threads(ranks, [&](int rank) {
    Exchange exchange(areas.all(), rank, sizes, patience);
    Random random(static_cast<std::uint64_t>(rank) + 1);
    std::vector<const float*> inputs(static_cast<std::size_t>(ranks));
    std::vector<float*> outputs(static_cast<std::size_t>(ranks));
    std::int64_t& fault = wrong[static_cast<std::size_t>(rank)];
    for (std::size_t c = 0; c < calls.size(); ++c) {
      const Call& call = calls[c];
      for (int r = 0; r < ranks; ++r) {
        Vectors& of_rank = vectors[2 * static_cast<std::size_t>(r) + c % 2];
        outputs[static_cast<std::size_t>(r)] = of_rank.output();
        inputs[static_cast<std::size_t>(r)] = call.in_place ? of_rank.output() : of_rank.input();
      }
      Vectors& mine = vectors[2 * static_cast<std::size_t>(rank) + c % 2];
      mine.clear();
      float* const input = call.in_place ? mine.output() : mine.input();
      for (std::int64_t i = 0; i < call.count; ++i) input[i] = value(c, rank, i);
      for (std::int64_t pause = random.integer(0, 3) - 2; pause > 0; --pause)
        std::this_thread::yield();
      if (call.mean)
        reduce<true>(exchange, call, input, mine.output(), inputs, outputs);
      else
        reduce<false>(exchange, call, input, mine.output(), inputs, outputs);
      for (std::int64_t i = 0; i < call.count; ++i) {
        const float want = expected(c, ranks, i, call.mean);
        fault +=
            std::bit_cast<std::uint32_t>(mine.output()[i]) != std::bit_cast<std::uint32_t>(want);
        fault += !call.in_place && input[i] != value(c, rank, i);
      }
      fault += mine.changed_outside(mine.output(), call.count);
    }
  });
  std::int64_t all = 0;
  for (const std::int64_t fault : wrong) all += fault;
  return all;
}

Call random_call(Random& random, std::int64_t longest) {
  Call call{static_cast<Protocol>(random.integer(0, 3)), random.integer(0, longest), random.coin(),
            random.coin()};
  if (call.protocol == Protocol::lines) call.count %= Exchange::line_floats + 1;
  return call;
}

TEST(SharedWindow, EveryRankHasTheBitsOfTheSumInRankOrder) {
  Random random(11);
  for (int round = 0; round < 24; ++round) {
    const int ranks = 1 + round % 6;
    const ExchangeSizes sizes{.chunk = 16 * random.integer(1, 5),
                              .sums = true,
                              .streaming_from = random.coin() ? 0 : 1 << 20};
    std::vector<Call> calls;
    for (int c = 0; c < 40; ++c) calls.push_back(random_call(random, random.coin() ? 40 : 900));
    ASSERT_EQ(faults(calls, ranks, sizes, random.integer(0, 15)), 0)
        << ranks << " ranks, chunks of " << sizes.chunk << " floats, streaming from "
        << sizes.streaming_from;
  }
}

// One protocol at a time, as in the rungs: a fast rank is as far ahead as its flags allow.
TEST(SharedWindow, ShortCallsBackToBackDoNotOverwriteWhatASlowRankReads) {
  for (const Protocol protocol :
       {Protocol::lines, Protocol::slots, Protocol::slots_in_slices, Protocol::slices})
    for (const int ranks : {2, 3, 5}) {
      const ExchangeSizes sizes{.chunk = 16, .sums = true, .streaming_from = 1 << 20};
      const std::int64_t count = protocol == Protocol::lines ? 14 : 70;
      const std::vector<Call> calls(400, Call{protocol, count, false, false});
      ASSERT_EQ(faults(calls, ranks, sizes, 3), 0)
          << "protocol " << static_cast<int>(protocol) << ", " << ranks << " ranks";
    }
}

TEST(SharedWindow, SlicesTileTheVectorAndShareNoCacheLine) {
  Random random(5);
  const AlignedArray<float> memory = aligned_array<float>(64);
  for (int round = 0; round < 2000; ++round) {
    const float* const vector = memory.get() + random.integer(0, 15);
    const std::int64_t count = random.integer(0, 300);
    const int ranks = static_cast<int>(random.integer(1, 9));
    std::int64_t next = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const Range slice = Exchange::slice_of(vector, count, ranks, rank);
      ASSERT_EQ(slice.begin, next);
      ASSERT_GE(slice.end, slice.begin);
      if (slice.begin > 0 && slice.begin < count) {
        ASSERT_EQ(reinterpret_cast<std::uintptr_t>(vector + slice.begin) % cache_line, 0U);
      }
      next = slice.end;
    }
    ASSERT_EQ(next, count);
  }
}

TEST(SharedWindow, AMissingRankIsNamedAfterTheLimit) {
  const ExchangeSizes sizes{.chunk = 16, .sums = false, .streaming_from = 0};
  const Areas areas(3, sizes);
  const std::vector<float> input(20, 1.0F);
  std::vector<std::string> reasons(3);
  on_threads(3, [&](int rank) {
    if (rank == 1) return;
    Exchange exchange(areas.all(), rank, sizes, {.polls = 10, .limit = 50ms});
    std::vector<float> output(20);
    try {
      exchange.through_slots<false>(input.data(), output.data(), 20);
    } catch (const std::runtime_error& error) {
      reasons[static_cast<std::size_t>(rank)] = error.what();
    }
  });
  EXPECT_EQ(reasons[0], "shared_window: rank 1 did not arrive within 50 ms");
  EXPECT_EQ(reasons[2], reasons[0]);
}

}  // namespace
}  // namespace stepladder::all_reduce

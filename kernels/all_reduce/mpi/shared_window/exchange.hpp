// The protocols of the rungs in shared memory, on plain memory: their users are processes with a
// window, or threads in a test. Each rank has an area that all ranks read and only its owner
// writes: a flag, slots for chunks of vectors, and slots for chunks of sums.
//
// All ranks make the same calls in the same order. The README of all_reduce proves that no rank
// reads what another one is writing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "kernels/all_reduce/mpi/shared_window/flags.hpp"
#include "kernels/all_reduce/mpi/shared_window/sum_range.hpp"
#include "kernels/common/cpu/partition.hpp"
#include "kernels/common/integer_math.hpp"

namespace stepladder::all_reduce {

struct ExchangeSizes {
  std::int64_t chunk = 0;           // floats of a slot, a multiple of 16; 0: no slots
  bool sums = false;                // whether there are slots for sums
  std::int64_t streaming_from = 0;  // floats from which results are stored past the caches
};

inline namespace STEPLADDER_ISA {

class Exchange {
 public:
  static constexpr std::int64_t line_floats = 14;  // of a vector that shares a line with its flag

  static std::size_t area_bytes(const ExchangeSizes& sizes) {
    return slots_at +
           (sizes.sums ? 2 : 1) * slots * static_cast<std::size_t>(sizes.chunk) * sizeof(float);
  }

  // areas[r]: area_bytes of zeros that belong to rank r, aligned to pages.
  Exchange(std::vector<std::byte*> areas, int rank, const ExchangeSizes& sizes,
           const Patience& patience)
      : areas_(std::move(areas)),
        rank_(rank),
        ranks_(static_cast<int>(areas_.size())),
        sizes_(sizes),
        patience_(patience),
        inputs_(areas_.size()) {}

  // One step: values and flag arrive in the same cache line. count <= line_floats.
  template <bool mean>
  void through_lines(const float* input, float* output, std::int64_t count) {
    ++step_;
    Line& mine = line_of(rank_);
    copy_values(input, mine.values, count, Stores::cached);
    mine.flag.store(step_, std::memory_order_release);
    for (int r = 0; r < ranks_; ++r) {
      const Line& line = line_of(r);
      if (r != rank_) wait_for(line.flag, step_, r, patience_);
      inputs_[static_cast<std::size_t>(r)] = r == rank_ ? input : line.values;
    }
    sum_range<mean>({inputs_.data(), ranks_, &output, 1}, 0, count, Stores::cached);
  }

  // One step per chunk. Every rank copies its chunks into its slots, one ahead of its sums, and
  // sums the chunks of all ranks.
  template <bool mean>
  void through_slots(const float* input, float* output, std::int64_t count) {
    const std::int64_t chunks = ceil_div(count, sizes_.chunk);
    const Stores stores = stores_for(count);
    const Step first = step_;
    const auto put = [&](std::int64_t c) {
      const Range chunk = chunk_range(c, count);
      copy_values(input + chunk.begin, slot_of(rank_, first + static_cast<Step>(c)),
                  chunk.end - chunk.begin, stores);
      announce(first + static_cast<Step>(c) + 1, stores);
    };
    if (chunks > 0) put(0);
    for (std::int64_t c = 0; c < chunks; ++c) {
      if (c + 1 < chunks) put(c + 1);
      const Step step = first + static_cast<Step>(c);
      wait_for_all(step + 1);
      const Range chunk = chunk_range(c, count);
      for (int r = 0; r < ranks_; ++r)
        inputs_[static_cast<std::size_t>(r)] = r == rank_ ? input + chunk.begin : slot_of(r, step);
      float* const to = output + chunk.begin;
      sum_range<mean>({inputs_.data(), ranks_, &to, 1}, 0, chunk.end - chunk.begin, stores);
    }
    if (stores == Stores::streaming) finish_streaming();
    step_ = first + static_cast<Step>(chunks);
  }

  // One step per chunk, and three more. Every rank sums its slice of each chunk and copies the
  // slices of the others: 3 n bytes per rank through shared slots, where through_slots has p n.
  // Sums follow the copies by one step, and results follow the sums by two.
  template <bool mean>
  void through_slots_in_slices(const float* input, float* output, std::int64_t count) {
    const std::int64_t chunks = ceil_div(count, sizes_.chunk);
    const Stores stores = stores_for(count);
    for (std::int64_t i = 0; i < chunks + 3; ++i, ++step_) {
      if (i < chunks) {
        const Range chunk = chunk_range(i, count);
        copy_values(input + chunk.begin, slot_of(rank_, step_), chunk.end - chunk.begin, stores);
      }
      announce(step_ + 1, stores);
      wait_for_all(step_);
      if (i >= 1 && i - 1 < chunks) {
        for (int r = 0; r < ranks_; ++r)
          inputs_[static_cast<std::size_t>(r)] = slot_of(r, step_ - 1);
        float* const sums = sums_of(rank_, step_ - 1);
        const Range slice = slice_of_chunk(i - 1, count, rank_);
        sum_range<mean>({inputs_.data(), ranks_, &sums, 1}, slice.begin, slice.end, stores);
      }
      if (i >= 3 && i - 3 < chunks)
        for (int r = 0; r < ranks_; ++r) {
          const float* const sums = sums_of(r, step_ - 3);
          float* const to = output + chunk_range(i - 3, count).begin;
          const Range slice = slice_of_chunk(i - 3, count, r);
          sum_range<false>({&sums, 1, &to, 1}, slice.begin, slice.end, stores);
        }
    }
    if (stores == Stores::streaming) finish_streaming();
  }

  // Two steps. Every rank sums its slice of all inputs and stores it into all outputs. inputs[r],
  // outputs[r]: the vectors of rank r, which all ranks can access, with equal alignment to cache
  // lines; inputs[r] may be outputs[r].
  template <bool mean>
  void in_slices(const float* const* inputs, float* const* outputs, std::int64_t count) {
    const Stores stores = stores_for(count);
    barrier(Stores::cached);
    const Range slice = slice_of(outputs[0], count, ranks_, rank_);
    sum_range<mean>({inputs, ranks_, outputs, ranks_}, slice.begin, slice.end, stores);
    barrier(stores);
  }

  // Slices begin at cache lines of the vector: no line is written by two ranks.
  static Range slice_of(const float* vector, std::int64_t count, int ranks, int rank) {
    const std::int64_t lead = std::min(count, floats_to_line(vector));
    const Range range = partition(count - lead, ranks, rank, 16);
    return {rank == 0 ? 0 : lead + range.begin, lead + range.end};
  }

 private:
  struct Line {
    Flag flag;
    float values[line_floats];
  };
  static_assert(sizeof(Line) == 64);
  static constexpr Step slots = 4;
  // An area: a line with a flag; the lines of even and of odd steps; the slots. Lines are two cache
  // lines apart, because a prefetcher loads the neighbour of a line too.
  static constexpr std::size_t line_pitch = 128;
  static constexpr std::size_t slots_at = 4096;

  std::byte* area(int rank) const { return areas_[static_cast<std::size_t>(rank)]; }
  Flag& flag_of(int rank) const { return *reinterpret_cast<Flag*>(area(rank)); }
  Line& line_of(int rank) const {
    return *reinterpret_cast<Line*>(area(rank) + (1 + step_ % 2) * line_pitch);
  }
  float* slot_of(int rank, Step step) const {
    return reinterpret_cast<float*>(area(rank) + slots_at) +
           static_cast<std::int64_t>(step % slots) * sizes_.chunk;
  }
  float* sums_of(int rank, Step step) const {
    return slot_of(rank, step) + static_cast<std::int64_t>(slots) * sizes_.chunk;
  }

  Range chunk_range(std::int64_t chunk, std::int64_t count) const {
    return {chunk * sizes_.chunk, std::min(count, (chunk + 1) * sizes_.chunk)};
  }
  Range slice_of_chunk(std::int64_t chunk, std::int64_t count, int rank) const {
    const Range range = chunk_range(chunk, count);
    return partition(range.end - range.begin, ranks_, rank, 16);
  }
  Stores stores_for(std::int64_t count) const {
    return count >= sizes_.streaming_from ? Stores::streaming : Stores::cached;
  }
  static void copy_values(const float* from, float* to, std::int64_t count, Stores stores) {
    sum_range<false>({&from, 1, &to, 1}, 0, count, stores);
  }

  // A release store orders all stores of this rank before it but the streaming ones.
  void announce(Step step, Stores stores) {
    if (stores == Stores::streaming) finish_streaming();
    flag_of(rank_).store(step, std::memory_order_release);
  }
  void wait_for_all(Step step) const {
    for (int r = 0; r < ranks_; ++r)
      if (r != rank_) wait_for(flag_of(r), step, r, patience_);
  }
  void barrier(Stores stores) {
    announce(++step_, stores);
    wait_for_all(step_);
  }

  std::vector<std::byte*> areas_;  // [ranks]
  int rank_, ranks_;
  ExchangeSizes sizes_;
  Patience patience_;
  Step step_ = 0;                     // the same on all ranks between calls
  std::vector<const float*> inputs_;  // [ranks], of the sum at hand
};

}  // namespace STEPLADDER_ISA
}  // namespace stepladder::all_reduce

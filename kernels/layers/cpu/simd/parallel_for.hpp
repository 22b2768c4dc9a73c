// A loop whose iterations are divided among threads.
#pragma once

#include <cstdint>

#include "kernels/common/cpu/parts.hpp"

namespace stepladder::layers::inline STEPLADDER_ISA {

inline constexpr std::int64_t min_elements_per_thread = 32768;  // a few microseconds of work

// Divides [0, items) into one contiguous range per thread and calls body(begin, end, thread) for
// each; 0 <= thread < threads.
template <class Body>
void parallel_for(std::int64_t items, std::int64_t elements_per_item, int threads,
                  const Body& body) {
  const int parts =
      parts_that_pay(items, items * elements_per_item, min_elements_per_thread, threads);
  for_each_part(items, parts,
                [&](const Range& range, int thread) { body(range.begin, range.end, thread); });
}

}  // namespace stepladder::layers::inline STEPLADDER_ISA

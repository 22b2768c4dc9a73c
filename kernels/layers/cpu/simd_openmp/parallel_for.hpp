// A loop whose iterations are divided among threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/common/cpu/partition.hpp"

namespace stepladder::layers::inline STEPLADDER_ISA {

inline constexpr std::int64_t min_elements_per_thread = 32768;  // a few microseconds of work

// Divides [0, items) into one contiguous range per thread and calls body(begin, end, thread) for
// each; 0 <= thread < threads. Small problems use fewer threads: waking a thread costs
// microseconds.
template <class Body>
void parallel_for(std::int64_t items, std::int64_t elements_per_item, int threads,
                  const Body& body) {
  const std::int64_t parts =
      std::min({items, items * elements_per_item / min_elements_per_thread, std::int64_t{threads}});
  if (parts <= 1) return body(0, items, 0);
#pragma omp parallel for num_threads(static_cast <int>(parts)) schedule(static, 1)
  for (std::int64_t thread = 0; thread < parts; ++thread) {
    const auto [begin, end] = partition(items, parts, thread);
    body(begin, end, static_cast<int>(thread));
  }
}

}  // namespace stepladder::layers::inline STEPLADDER_ISA

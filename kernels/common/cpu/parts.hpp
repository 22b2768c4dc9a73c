// A loop in contiguous parts, one for each OpenMP thread.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/common/cpu/partition.hpp"

namespace stepladder::inline STEPLADDER_ISA {

// The parts of `items` that pay: small problems use fewer threads, since waking one costs
// microseconds. Each part has `min_elements` or more.
inline int parts_that_pay(std::int64_t items, std::int64_t elements, std::int64_t min_elements,
                          int threads) {
  return static_cast<int>(
      std::clamp<std::int64_t>(std::min(items, elements / min_elements), 1, threads));
}

// The threads that pay for a narrow product: a fork and join of a waiting team costs about a
// microsecond.
inline int threads_that_pay(double flops, int threads) {
  constexpr double flops_of_a_fork = 1e6;
  return std::max(1, static_cast<int>(std::min<double>(threads, flops / flops_of_a_fork)));
}

// Calls body(range, part) for 0 <= part < parts. Ranges begin at multiples of `granule`.
template <class Body>
void for_each_part(std::int64_t items, int parts, const Body& body, std::int64_t granule = 1) {
  if (parts == 1) return body(Range{0, items}, 0);
#pragma omp parallel for num_threads(parts) schedule(static, 1)
  for (int part = 0; part < parts; ++part) body(partition(items, parts, part, granule), part);
}

}  // namespace stepladder::inline STEPLADDER_ISA

// Work for several threads, and vectors over an array.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/common/cpu/partial_vector.hpp"
#include "kernels/common/cpu/simd.hpp"

namespace stepladder::layers::inline STEPLADDER_ISA {

inline constexpr std::int64_t worth_a_thread = 32768;  // elements: a few microseconds of work

// Calls body(begin, end, part) for stretches of [0, items), each on a thread of its own;
// 0 <= part < threads. Little work stays on one thread: waking the others would cost more.
template <class Body>
void in_stretches(std::int64_t items, std::int64_t elements_of_item, int threads,
                  const Body& body) {
  const std::int64_t parts =
      std::min({items, items * elements_of_item / worth_a_thread, std::int64_t{threads}});
  if (parts <= 1) return body(0, items, 0);
#pragma omp parallel for num_threads(static_cast <int>(parts)) schedule(static, 1)
  for (std::int64_t part = 0; part < parts; ++part)
    body(items * part / parts, items * (part + 1) / parts, static_cast<int>(part));
}

// Calls body(i, load, store) for each vector of [0, count), the last one perhaps in part: load(p) gives
// the vector at p + i, zeros beyond the end, and store(p, v) writes it to p + i.
template <class Body>
inline void over_vectors(std::int64_t count, const Body& body) {
  constexpr auto lanes = static_cast<std::int64_t>(Vector::size);
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    body(
        i, [i](const float* p) { return Vector::load_unaligned(p + i); },
        [i](float* p, const Vector& v) { v.store_unaligned(p + i); });
  const std::int64_t rest = count - i;
  if (rest > 0)
    body(
        i, [i, rest](const float* p) { return load_partial(p + i, rest); },
        [i, rest](float* p, const Vector& v) { store_partial(p + i, v, rest); });
}

}  // namespace stepladder::layers::inline STEPLADDER_ISA

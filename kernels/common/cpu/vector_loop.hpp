// A loop over the vectors of an array, with its tail.
#pragma once

#include <cstdint>

#include "kernels/common/cpu/partial_vector.hpp"
#include "kernels/common/cpu/simd.hpp"

namespace stepladder::inline STEPLADDER_ISA {

// Calls body(i, load, store) for i = begin, begin + lanes, … < end. load(p) returns the vector at
// p + i and store(p, v) writes v to p + i. In the tail they access only the elements before `end`;
// load then fills the other lanes with zeros. Every element sees the same arithmetic, wherever
// ranges begin and end.
template <class Body>
inline void for_each_vector(std::int64_t begin, std::int64_t end, const Body& body) {
  constexpr auto lanes = static_cast<std::int64_t>(Vector::size);
  std::int64_t i = begin;
  for (; i + lanes <= end; i += lanes)
    body(
        i, [i](const float* p) { return Vector::load_unaligned(p + i); },
        [i](float* p, const Vector& v) { v.store_unaligned(p + i); });
  const std::int64_t rest = end - i;
  if (rest > 0)
    body(
        i, [i, rest](const float* p) { return load_partial(p + i, rest); },
        [i, rest](float* p, const Vector& v) { store_partial(p + i, v, rest); });
}

}  // namespace stepladder::inline STEPLADDER_ISA

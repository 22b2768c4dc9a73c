// Copies between contiguous floats and pixels of a row that are a stride apart.
#pragma once

#include <cstdint>
#include <xsimd/xsimd.hpp>

#include "kernels/common/cpu/partial_vector.hpp"

namespace stepladder::convolution::inline STEPLADDER_ISA {

// to[i] = from[i · step] for i < count. It writes whole vectors: up to lanes − 1 floats after the
// last are overwritten.
inline void gather_strided(const float* from, std::int64_t step, std::int64_t count, float* to) {
  constexpr auto lanes = static_cast<std::int64_t>(Vector::size);
  if (step == 1) {
    std::int64_t i = 0;
    for (; i + lanes <= count; i += lanes) Vector::load_unaligned(from + i).store_unaligned(to + i);
    if (i < count) load_partial(from + i, count - i).store_unaligned(to + i);
  } else if (step == 2) {  // a constant: the compiler uses shuffles
    for (std::int64_t i = 0; i < count; ++i) to[i] = from[2 * i];
  } else {
    for (std::int64_t i = 0; i < count; ++i) to[i] = from[step * i];
  }
}

// to[i · step] = from[i] for i < count. It writes nothing else.
inline void scatter_strided(const float* from, std::int64_t count, std::int64_t step, float* to) {
  constexpr auto lanes = static_cast<std::int64_t>(Vector::size);
  if (step == 1) {
    std::int64_t i = 0;
    for (; i + lanes <= count; i += lanes) Vector::load_unaligned(from + i).store_unaligned(to + i);
    if (i < count) store_partial(to + i, load_partial(from + i, count - i), count - i);
  } else {
    for (std::int64_t i = 0; i < count; ++i) to[i * step] = from[i];
  }
}

}  // namespace stepladder::convolution::inline STEPLADDER_ISA

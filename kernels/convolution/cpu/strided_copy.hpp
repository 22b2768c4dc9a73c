// Copies between contiguous floats and pixels of a row that are a stride apart.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <xsimd/xsimd.hpp>

#include "kernels/common/cpu/instructions.hpp"
#include "kernels/common/cpu/partial_vector.hpp"

namespace stepladder::convolution::inline STEPLADDER_ISA {

#if defined(__AVX512F__)
// For 16 floats that are `step` <= max_step apart: element l is in the (l · step / 16)-th vector of
// the source, at l · step % 16.
struct StridedLanes {
  static constexpr std::int64_t max_step = 8;
  alignas(64) std::array<std::int32_t, 16> element{};
  std::array<__mmask16, max_step> lanes_of_vector{};

  explicit constexpr StridedLanes(std::int64_t step) {
    for (std::int64_t l = 0; l < 16; ++l) {
      element[static_cast<std::size_t>(l)] = static_cast<std::int32_t>(l * step % 16);
      lanes_of_vector[static_cast<std::size_t>(l * step / 16)] |= static_cast<__mmask16>(1U << l);
    }
  }
};

template <std::size_t... Step>
constexpr std::array<StridedLanes, sizeof...(Step)> strided_lanes(std::index_sequence<Step...>) {
  return {StridedLanes(static_cast<std::int64_t>(Step) + 1)...};
}

// One permutation per vector of the source instead of 16 loads and stores.
inline void gather_lanes(const float* from, std::int64_t step, std::int64_t count, float* to) {
  static constexpr auto of_step = strided_lanes(std::make_index_sequence<StridedLanes::max_step>{});
  const StridedLanes& lanes = of_step[static_cast<std::size_t>(step - 1)];
  const __m512i element = _mm512_load_si512(lanes.element.data());
  std::int64_t rest = (count - 1) * step + 1;  // floats of the source
  for (; rest > 0; rest -= 16 * step, from += 16 * step, to += 16) {
    __m512 gathered = _mm512_setzero_ps();
    const std::int64_t vectors = std::min(step, (rest + 15) / 16);
    for (std::int64_t v = 0; v < vectors; ++v)
      gathered = _mm512_mask_permutexvar_ps(
          gathered, lanes.lanes_of_vector[static_cast<std::size_t>(v)], element,
          load_partial<Vector>(from + 16 * v, std::min<std::int64_t>(16, rest - 16 * v)));
    _mm512_storeu_ps(to, gathered);
  }
}
#endif

// to[i] = from[i · step] for i < count. It writes whole vectors: up to lanes − 1 floats after the
// last are overwritten.
inline void gather_strided(const float* from, std::int64_t step, std::int64_t count, float* to) {
  constexpr auto lanes = static_cast<std::int64_t>(Vector::size);
  if (step == 1) {
    std::int64_t i = 0;
    for (; i + lanes <= count; i += lanes) Vector::load_unaligned(from + i).store_unaligned(to + i);
    if (i < count) load_partial(from + i, count - i).store_unaligned(to + i);
    return;
  }
#if defined(__AVX512F__)
  if (step <= StridedLanes::max_step && count >= 8) return gather_lanes(from, step, count, to);
#endif
  if (step == 2) {  // a constant: the compiler uses shuffles
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

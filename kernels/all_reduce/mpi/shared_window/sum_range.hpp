// Sums of vectors, for the rungs in shared memory: reads each input once and writes each output
// once, however many there are.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/common/cpu/instructions.hpp"
#include "kernels/common/cpu/simd.hpp"
#include "kernels/common/cpu/vector_loop.hpp"

namespace stepladder::all_reduce::inline STEPLADDER_ISA {

// streaming: non-temporal stores. They write whole cache lines to memory without reading them
// first, a third of the traffic of a copy, but leave nothing in the caches.
enum class Stores { cached, streaming };

struct SumOperands {
  const float* const* inputs;  // [ranks], added in this order
  int ranks;
  float* const* outputs;  // [copies], each receives the sum; may be inputs
  int copies;
};

inline void stream(float* to, const Vector& vector) {
#if defined(__AVX512F__)
  _mm512_stream_ps(to, vector);
#elif defined(__AVX2__)
  _mm256_stream_ps(to, vector);
#elif defined(__aarch64__)
  vector.store_aligned(to);
#else
  _mm_stream_ps(to, vector);
#endif
}

// Floats from `p` to the next boundary of a cache line.
inline std::int64_t floats_to_line(const float* p) {
  return static_cast<std::int64_t>((0 - reinterpret_cast<std::uintptr_t>(p)) % 64 / sizeof(float));
}

// `ranks`, `copies`: known numbers, which the compiler unrolls; 0 if known at run time only.
template <bool mean, Stores stores, int ranks, int copies>
void sum_known(const SumOperands& o, std::int64_t begin, std::int64_t end) {
  constexpr auto lanes = static_cast<std::int64_t>(Vector::size);
  // One cache line of each vector at a time: with four, AVX-512 took up to 1.7 times as long.
  constexpr std::int64_t unroll = stores == Stores::streaming ? 16 / lanes : 4;
  // The hardware prefetchers stop at boundaries of 4 KiB.
  constexpr std::int64_t ahead = 2048 / sizeof(float);
  const int inputs = ranks > 0 ? ranks : o.ranks;
  const int outputs = copies > 0 ? copies : o.copies;
  const Vector divisor(static_cast<float>(inputs));
  // Local copies stay in registers; the stores below could change the arrays behind `o`.
  const float* known_inputs[std::max(ranks, 1)];
  float* known_outputs[std::max(copies, 1)];
  for (int r = 0; r < ranks; ++r) known_inputs[r] = o.inputs[r];
  for (int c = 0; c < copies; ++c) known_outputs[c] = o.outputs[c];
  const float* const* const all_inputs = ranks > 0 ? known_inputs : o.inputs;
  float* const* const all_outputs = copies > 0 ? known_outputs : o.outputs;
  std::int64_t i = begin;
  for (; i + unroll * lanes <= end; i += unroll * lanes) {
    const auto prefetch = [&](const float* from) {
      if constexpr (stores == Stores::streaming)
        for (std::int64_t at = 0; at < unroll * lanes; at += 16)
          __builtin_prefetch(from + ahead + at);
    };
    const float* const first = all_inputs[0] + i;
    Vector sum[unroll];
    prefetch(first);
    for (std::int64_t u = 0; u < unroll; ++u) sum[u] = Vector::load_unaligned(first + u * lanes);
    for (int r = 1; r < inputs; ++r) {
      const float* const from = all_inputs[r] + i;
      prefetch(from);
      for (std::int64_t u = 0; u < unroll; ++u) sum[u] += Vector::load_unaligned(from + u * lanes);
    }
    if constexpr (mean)
      for (Vector& s : sum) s /= divisor;
    for (int c = 0; c < outputs; ++c)
      for (std::int64_t u = 0; u < unroll; ++u) {
        float* const to = all_outputs[c] + i + u * lanes;
        if constexpr (stores == Stores::streaming)
          stream(to, sum[u]);
        else
          sum[u].store_unaligned(to);
      }
  }
  for_each_vector(i, end, [&](std::int64_t, const auto& load, const auto& store) {
    Vector sum = load(o.inputs[0]);
    for (int r = 1; r < inputs; ++r) sum += load(o.inputs[r]);
    if constexpr (mean) sum /= divisor;
    for (int c = 0; c < outputs; ++c) store(o.outputs[c], sum);
  });
}

template <bool mean, Stores stores>
void sum_any(const SumOperands& o, std::int64_t begin, std::int64_t end) {
  if (o.ranks == 1 && o.copies == 1) return sum_known<mean, stores, 1, 1>(o, begin, end);
  if (o.ranks == 2 && o.copies == 1) return sum_known<mean, stores, 2, 1>(o, begin, end);
  if (o.ranks == 2 && o.copies == 2) return sum_known<mean, stores, 2, 2>(o, begin, end);
  if (o.ranks == 4 && o.copies == 4) return sum_known<mean, stores, 4, 4>(o, begin, end);
  sum_known<mean, stores, 0, 0>(o, begin, end);
}

// outputs[c][i] = sum over r of inputs[r][i], divided by `ranks` if mean, for begin <= i < end.
// After streaming, a fence must precede the flag that announces the result.
template <bool mean>
void sum_range(const SumOperands& o, std::int64_t begin, std::int64_t end, Stores stores) {
  bool alike = stores == Stores::streaming && end - begin >= 256;
  for (int c = 0; c < o.copies && alike; ++c)
    alike = floats_to_line(o.outputs[c] + begin) == floats_to_line(o.outputs[0] + begin) &&
            reinterpret_cast<std::uintptr_t>(o.outputs[c]) % sizeof(float) == 0;
  if (!alike) return sum_any<mean, Stores::cached>(o, begin, end);
  const std::int64_t first = begin + floats_to_line(o.outputs[0] + begin);
  if (first > begin) sum_any<mean, Stores::cached>(o, begin, first);
  sum_any<mean, Stores::streaming>(o, first, end);
}

}  // namespace stepladder::all_reduce::inline STEPLADDER_ISA

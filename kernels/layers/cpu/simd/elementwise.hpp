// relu, sigmoid, tanh and dropout: to[i] = function(from[i]), vectorized, in one contiguous chunk
// per thread.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "kernels/common/cpu/vector_loop.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/layers/cpu/simd/parallel_for.hpp"
#include "kernels/layers/layers.hpp"

namespace stepladder::layers::inline STEPLADDER_ISA {

// to[i] = function(i, from[i]…)
template <class Function, class... Inputs>
void map(std::int64_t count, int threads, float* to, const Function& function,
         const Inputs*... from) {
  constexpr std::int64_t chunk = 1024;  // a multiple of the vector: only the last chunk has a tail
  parallel_for(ceil_div(count, chunk), chunk, threads,
               [&](std::int64_t begin, std::int64_t end, int) {
                 const std::int64_t first = begin * chunk;
                 for_each_vector(0, std::min(count, end * chunk) - first,
                                 [&](std::int64_t i, const auto& load, const auto& store) {
                                   store(to + first, function(first + i, load(from + first)...));
                                 });
               });
}

inline void relu_forward(const Problem& p, const Operands& o, int threads) {
  map(
      p.count(), threads, o.y,
      [](std::int64_t, const Vector& x) { return xsimd::max(Vector(0.0F), x); }, o.x);
}

inline void relu_backward(const Problem& p, const Operands& o, int threads) {
  map(
      p.count(), threads, o.dx,
      [](std::int64_t, const Vector& y, const Vector& dy) {
        return xsimd::select(y > Vector(0.0F), dy, Vector(0.0F));
      },
      o.y, o.dy);
}

inline void sigmoid_forward(const Problem& p, const Operands& o, int threads) {
  map(
      p.count(), threads, o.y,
      [](std::int64_t, const Vector& x) { return Vector(1.0F) / (Vector(1.0F) + xsimd::exp(-x)); },
      o.x);
}

inline void sigmoid_backward(const Problem& p, const Operands& o, int threads) {
  map(
      p.count(), threads, o.dx,
      [](std::int64_t, const Vector& y, const Vector& dy) { return dy * y * (Vector(1.0F) - y); },
      o.y, o.dy);
}

// tanh x = e / (e + 2) with e = e^2x − 1 = 2^n (e^r − 1) + 2^n − 1, where 2x = n ln 2 + r and
// |r| <= ln 2 / 2: small results do not cancel. e^r − 1 = r + r² q(r), where q was fitted to a
// relative error of 2^-26 (least squares with Lawson's weights); in all 3 · 2^-24. From 9.02 on,
// tanh x is 1 in fp32.
inline Vector tanh_of(const Vector& x) {
  using Integers = xsimd::batch<std::int32_t, Arch>;
  const Vector limit(9.02F);
  const Vector clamped = xsimd::min(limit, xsimd::max(-limit, x));  // NaN stays NaN
  const Vector twice = clamped + clamped;
  // Adding 1.5 · 2^23 rounds to an integer, which is in the lowest bits then.
  const Vector magic(0x1.8p23F);
  const Vector shifted = xsimd::fma(twice, Vector(0x1.715476p0F), magic);
  const Vector n = shifted - magic;
  // ln 2 in two parts, of which the first has few bits: its product with n is exact.
  const Vector r =
      xsimd::fnma(n, Vector(-2.12194440e-4F), xsimd::fnma(n, Vector(0.693359375F), twice));
  Vector q(0x1.6bea52p-10F);
  for (const float c : {0x1.1232a6p-7F, 0x1.55568cp-5F, 0x1.5554a2p-3F, 0x1.fffffep-2F})
    q = xsimd::fma(q, r, Vector(c));
  const Vector power = std::bit_cast<Vector>(
      Integers((std::bit_cast<Integers>(shifted) << 23) + std::bit_cast<Integers>(Vector(1.0F))));
  const Vector e = xsimd::fma(power, xsimd::fma(r * r, q, r), power - Vector(1.0F));
  return e / (e + Vector(2.0F)) | (x & Vector(-0.0F));  // the sign of zero
}

inline void tanh_forward(const Problem& p, const Operands& o, int threads) {
  map(
      p.count(), threads, o.y, [](std::int64_t, const Vector& x) { return tanh_of(x); }, o.x);
}

inline void tanh_backward(const Problem& p, const Operands& o, int threads) {
  map(
      p.count(), threads, o.dx,
      [](std::int64_t, const Vector& y, const Vector& dy) { return dy * (Vector(1.0F) - y * y); },
      o.y, o.dy);
}

// dropout_hash of (key, index), (key, index + 1), …, one per lane
inline xsimd::batch<std::uint32_t, Arch> dropout_hashes(std::uint32_t key, std::int64_t index) {
  using Integers = xsimd::batch<std::uint32_t, Arch>;
  std::uint32_t lanes[Vector::size];
  for (std::uint32_t lane = 0; lane < Vector::size; ++lane) lanes[lane] = lane;
  Integers h = (Integers::load_unaligned(lanes) + Integers(static_cast<std::uint32_t>(index))) ^
               Integers(key);
  h = (h ^ (h >> 16)) * Integers(0x7feb352dU);
  h = (h ^ (h >> 15)) * Integers(0x846ca68bU);
  return h ^ (h >> 16);
}

inline void dropout(const Problem& p, const float* from, float* to, std::int64_t step,
                    int threads) {
  using Integers = xsimd::batch<std::uint32_t, Arch>;
  const std::uint32_t key = dropout_key(p.seed, step);
  const Integers threshold(drop_threshold(p.rate));
  const Vector factor(1 / (1 - p.rate));
  map(
      p.count(), threads, to,
      [&](std::int64_t i, const Vector& value) {
        const auto bits = std::bit_cast<Integers>(Vector(value * factor));  // 0.0 is 0 bits
        return std::bit_cast<Vector>(
            xsimd::select(dropout_hashes(key, i) >= threshold, bits, Integers(0U)));
      },
      from);
}

}  // namespace stepladder::layers::inline STEPLADDER_ISA

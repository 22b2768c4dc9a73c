// Dot products of vectors: a vector of each row is loaded, widened and multiplied, and its lanes
// are added at the end. bf16 becomes fp32 by a shift, fp16 by an instruction (AVX2 and up), int8
// 16-bit integers, whose products are added in pairs. Bits that differ are counted by a table of 16
// half bytes, which is an instruction's operand, and the counts of 8 bytes are added.
//
// In intrinsics: xsimd has no conversions from 8 and 16 bits.
#include <immintrin.h>

#include <bit>
#include <cstring>

#include "kernels/common/cpu/narrow_vectors.hpp"
#include "kernels/low_precision/formats.hpp"

namespace stepladder::low_precision {
namespace {

#if defined(__AVX512F__)

constexpr std::int64_t lanes = 16;
using Floats = __m512;
using Integers = __m512i;

Floats add_products(Floats sum, Floats a, Floats b) { return _mm512_fmadd_ps(a, b, sum); }
Integers add_products(Integers sum, const std::uint8_t* a, const std::int8_t* b) {
  const Integers wide_a =
      _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(a)));
  const Integers wide_b =
      _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(b)));
  return _mm512_add_epi32(sum, _mm512_madd_epi16(wide_a, wide_b));
}
Integers add_different(Integers sum, const std::uint64_t* a, const std::uint64_t* b) {
  const Integers table =
      _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4));
  const Integers four = _mm512_set1_epi8(15);
  const Integers bits = _mm512_xor_si512(_mm512_loadu_si512(a), _mm512_loadu_si512(b));
  const Integers of_bytes = _mm512_add_epi8(
      _mm512_shuffle_epi8(table, _mm512_and_si512(bits, four)),
      _mm512_shuffle_epi8(table, _mm512_and_si512(_mm512_srli_epi16(bits, 4), four)));
  return _mm512_add_epi64(sum, _mm512_sad_epu8(of_bytes, _mm512_setzero_si512()));
}

#elif defined(__AVX2__)

constexpr std::int64_t lanes = 8;
using Floats = __m256;
using Integers = __m256i;

Floats add_products(Floats sum, Floats a, Floats b) { return _mm256_fmadd_ps(a, b, sum); }
Integers add_products(Integers sum, const std::uint8_t* a, const std::int8_t* b) {
  const Integers wide_a =
      _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(a)));
  const Integers wide_b =
      _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(b)));
  return _mm256_add_epi32(sum, _mm256_madd_epi16(wide_a, wide_b));
}
Integers add_different(Integers sum, const std::uint64_t* a, const std::uint64_t* b) {
  const Integers table =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4));
  const Integers four = _mm256_set1_epi8(15);
  const Integers bits = _mm256_xor_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(a)),
                                         _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b)));
  const Integers of_bytes = _mm256_add_epi8(
      _mm256_shuffle_epi8(table, _mm256_and_si256(bits, four)),
      _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16(bits, 4), four)));
  return _mm256_add_epi64(sum, _mm256_sad_epu8(of_bytes, _mm256_setzero_si256()));
}

#else

constexpr std::int64_t lanes = 4;
using Floats = __m128;
using Integers = __m128i;

Floats add_products(Floats sum, Floats a, Floats b) { return _mm_add_ps(sum, _mm_mul_ps(a, b)); }
Integers add_products(Integers sum, const std::uint8_t* a, const std::int8_t* b) {
  const Integers wide_a = _mm_cvtepu8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(a)));
  const Integers wide_b = _mm_cvtepi8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(b)));
  return _mm_add_epi32(sum, _mm_madd_epi16(wide_a, wide_b));
}
Integers add_different(Integers sum, const std::uint64_t* a, const std::uint64_t* b) {
  const Integers table = _mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
  const Integers four = _mm_set1_epi8(15);
  const Integers bits = _mm_xor_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(a)),
                                      _mm_loadu_si128(reinterpret_cast<const __m128i*>(b)));
  const Integers of_bytes =
      _mm_add_epi8(_mm_shuffle_epi8(table, _mm_and_si128(bits, four)),
                   _mm_shuffle_epi8(table, _mm_and_si128(_mm_srli_epi16(bits, 4), four)));
  return _mm_add_epi64(sum, _mm_sad_epu8(of_bytes, _mm_setzero_si128()));
}

#endif

template <class Element, class Vector>
Element sum_of_lanes(const Vector& vector) {
  Element lane[sizeof(Vector) / sizeof(Element)], sum = 0;
  std::memcpy(lane, &vector, sizeof(Vector));
  for (const Element value : lane) sum += value;
  return sum;
}

template <class Half>
float dot(const Half* a, const Half* b, std::int64_t k) {
  Floats sum{};
  std::int64_t l = 0;
  for (; l + lanes <= k; l += lanes) sum = add_products(sum, widen(a + l), widen(b + l));
  float total = sum_of_lanes<float>(sum);
  for (; l < k; ++l) total += static_cast<float>(a[l]) * static_cast<float>(b[l]);
  return total;
}

float dot(const std::uint8_t* a, const std::int8_t* b, std::int64_t k) {
  Integers sum{};
  std::int64_t l = 0;
  for (; l + 2 * lanes <= k; l += 2 * lanes) sum = add_products(sum, a + l, b + l);
  auto total = sum_of_lanes<std::int32_t>(sum);
  for (; l < k; ++l) total += std::int32_t{a[l]} * b[l];
  return static_cast<float>(total);
}

std::int64_t different_bits(const std::uint64_t* a, const std::uint64_t* b, std::int64_t words) {
  constexpr std::int64_t step = lanes / 2;
  Integers sum{};
  std::int64_t w = 0;
  for (; w + step <= words; w += step) sum = add_different(sum, a + w, b + w);
  auto total = sum_of_lanes<std::int64_t>(sum);
  for (; w < words; ++w) total += std::popcount(a[w] ^ b[w]);
  return total;
}

template <class Function>
void for_each_pair(const Problem& p, const Operands& o, Function&& element) {
  const std::int64_t bytes = row_bytes(p);
  for (std::int64_t i = 0; i < p.m; ++i)
    for (std::int64_t j = 0; j < p.n; ++j)
      o.c[i * p.n + j] = element(static_cast<const std::byte*>(o.a) + i * bytes,
                                 static_cast<const std::byte*>(o.b) + j * bytes);
}

void multiply(const Problem& p, const Operands& o) {
  if (p.format == Format::binary)
    return for_each_pair(p, o, [&](const void* a, const void* b) {
      return static_cast<float>(p.k - 2 * different_bits(static_cast<const std::uint64_t*>(a),
                                                         static_cast<const std::uint64_t*>(b),
                                                         row_bytes(p) / 8));
    });
  for_types(p.format, [&]<class A, class B, class>() {
    for_each_pair(p, o, [&](const void* a, const void* b) {
      return dot(static_cast<const A*>(a), static_cast<const B*>(b), p.k);
    });
  });
}

constexpr VariantInfo info{
    .name = "simd",
    .technique = Technique::simd,
    .builds_on = "serial",
    .adds = "vectors along k, widened before they are multiplied",
    .idea = Idea::vectors,
    .isa = build_isa,
};

const Registration registration{info, plan_of<multiply>};

}  // namespace
}  // namespace stepladder::low_precision

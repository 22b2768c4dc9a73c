// SSE2, which every x86-64 CPU has: movmskps collects four signs.
#include "kernels/all_reduce/mpi/compressed/sign_code.hpp"

#include <emmintrin.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace stepladder::all_reduce {
namespace {

struct BlockCode {
  std::uint64_t signs;  // bit i: element i is negative
  float magnitude;
};
constexpr std::size_t code_bytes = 12;

BlockCode load(const std::byte* code) {
  BlockCode block{};
  std::memcpy(&block.signs, code, 8);
  std::memcpy(&block.magnitude, code + 8, 4);
  return block;
}
void store(const BlockCode& block, std::byte* code) {
  std::memcpy(code, &block.signs, 8);
  std::memcpy(code + 8, &block.magnitude, 4);
}

// The sign bits of four elements.
struct SignTable {
  alignas(16) std::uint32_t of[16][4];
  constexpr SignTable() : of{} {
    for (unsigned nibble = 0; nibble < 16; ++nibble)
      for (unsigned lane = 0; lane < 4; ++lane) of[nibble][lane] = (nibble >> lane & 1) << 31;
  }
};
constexpr SignTable signs;

// Calls store(i, four decoded values) for i = 0, 4, … 60.
template <class Store>
void decode_block(const BlockCode& block, const Store& store_four) {
  const __m128 magnitude = _mm_set1_ps(block.magnitude);
  for (int i = 0; i < sign_block; i += 4) {
    const auto* sign = reinterpret_cast<const float*>(signs.of[block.signs >> i & 15]);
    store_four(i, _mm_xor_ps(magnitude, _mm_load_ps(sign)));
  }
}

// `residual` becomes v - C(v) for a whole block.
BlockCode encode_block(const float* values, float* residual, float scale) {
  const __m128 sign = _mm_set1_ps(-0.0f);
  __m128 sums[4] = {};
  BlockCode block{};
  for (int i = 0; i < sign_block; i += 4) {
    const __m128 v = _mm_add_ps(_mm_loadu_ps(values + i), _mm_loadu_ps(residual + i));
    _mm_storeu_ps(residual + i, v);
    __m128& sum = sums[i / 4 % 4];
    sum = _mm_add_ps(sum, _mm_andnot_ps(sign, v));
    block.signs |= static_cast<std::uint64_t>(_mm_movemask_ps(v)) << i;
  }
  alignas(16) float four[4];
  _mm_store_ps(four, _mm_add_ps(_mm_add_ps(sums[0], sums[1]), _mm_add_ps(sums[2], sums[3])));
  block.magnitude = (four[0] + four[1] + four[2] + four[3]) * scale;
  decode_block(block, [&](int i, __m128 decoded) {
    _mm_storeu_ps(residual + i, _mm_sub_ps(_mm_loadu_ps(residual + i), decoded));
  });
  return block;
}

// Calls body(first element, elements of the block, code of the block).
template <class Code, class Body>
void for_each_block(std::int64_t count, Code* code, const Body& body) {
  for (std::int64_t at = 0; at < count; at += sign_block, code += code_bytes)
    body(at, std::min(sign_block, count - at), code);
}

}  // namespace

void encode_signs(const float* values, float* residual, std::int64_t count, std::byte* code) {
  for_each_block(count, code, [&](std::int64_t at, std::int64_t length, std::byte* to) {
    if (length == sign_block)
      return store(encode_block(values + at, residual + at, 1.0f / sign_block), to);
    float v[sign_block] = {};
    float rest[sign_block] = {};
    std::copy_n(values + at, length, v);
    std::copy_n(residual + at, length, rest);
    store(encode_block(v, rest, 1.0f / static_cast<float>(length)), to);
    std::copy_n(rest, length, residual + at);
  });
}

void decode_signs(const std::byte* code, std::int64_t count, float* values) {
  for_each_block(count, code, [&](std::int64_t at, std::int64_t length, const std::byte* from) {
    float partial[sign_block];
    float* to = length == sign_block ? values + at : partial;
    decode_block(load(from), [to](int i, __m128 decoded) { _mm_storeu_ps(to + i, decoded); });
    if (length < sign_block) std::copy_n(partial, length, values + at);
  });
}

void add_decoded_signs(const std::byte* code, std::int64_t count, float* values) {
  for_each_block(count, code, [&](std::int64_t at, std::int64_t length, const std::byte* from) {
    float partial[sign_block] = {};
    float* to = length == sign_block ? values + at : partial;
    if (length < sign_block) std::copy_n(values + at, length, partial);
    decode_block(load(from), [to](int i, __m128 decoded) {
      _mm_storeu_ps(to + i, _mm_add_ps(_mm_loadu_ps(to + i), decoded));
    });
    if (length < sign_block) std::copy_n(partial, length, values + at);
  });
}

}  // namespace stepladder::all_reduce

// Four elements at a time, in vectors that every CPU has. Of x86-64, movmskps collects four signs.
#include "kernels/all_reduce/mpi/compressed/sign_code.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/common/cpu/instructions.hpp"

namespace stepladder::all_reduce {
namespace {

using Four [[gnu::vector_size(16)]] = float;
using FourBits [[gnu::vector_size(16)]] = std::uint32_t;

template <class V = Four>
V load(const void* p) {
  V v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
void store(float* p, Four v) { std::memcpy(p, &v, sizeof v); }

Four magnitude_of(Four v) { return std::bit_cast<Four>(std::bit_cast<FourBits>(v) & 0x7fffffffU); }

std::uint64_t signs_of(Four v) {
#if defined(__x86_64__)
  return static_cast<std::uint64_t>(_mm_movemask_ps(v));
#else
  const FourBits sign = std::bit_cast<FourBits>(v) >> 31;
  return sign[0] | sign[1] << 1 | sign[2] << 2 | sign[3] << 3;
#endif
}

struct BlockCode {
  std::uint64_t signs;  // bit i: element i is negative
  float magnitude;
};
constexpr std::size_t code_bytes = 12;

BlockCode block_of(const std::byte* code) {
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
  const auto magnitude = std::bit_cast<FourBits>(Four{} + block.magnitude);
  for (int i = 0; i < sign_block; i += 4)
    store_four(i, std::bit_cast<Four>(magnitude ^ load<FourBits>(signs.of[block.signs >> i & 15])));
}

// `residual` becomes v - C(v) for a whole block.
BlockCode encode_block(const float* values, float* residual, float scale) {
  Four sums[4] = {};
  BlockCode block{};
  for (int i = 0; i < sign_block; i += 4) {
    const Four v = load(values + i) + load(residual + i);
    store(residual + i, v);
    sums[i / 4 % 4] += magnitude_of(v);
    block.signs |= signs_of(v) << i;
  }
  const Four four = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  block.magnitude = (four[0] + four[1] + four[2] + four[3]) * scale;
  decode_block(block,
               [&](int i, Four decoded) { store(residual + i, load(residual + i) - decoded); });
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
    decode_block(block_of(from), [to](int i, Four decoded) { store(to + i, decoded); });
    if (length < sign_block) std::copy_n(partial, length, values + at);
  });
}

void add_decoded_signs(const std::byte* code, std::int64_t count, float* values) {
  for_each_block(count, code, [&](std::int64_t at, std::int64_t length, const std::byte* from) {
    float partial[sign_block] = {};
    float* to = length == sign_block ? values + at : partial;
    if (length < sign_block) std::copy_n(values + at, length, partial);
    decode_block(block_of(from),
                 [to](int i, Four decoded) { store(to + i, load(to + i) + decoded); });
    if (length < sign_block) std::copy_n(partial, length, values + at);
  });
}

}  // namespace stepladder::all_reduce

// The codec of fp16_ring and bf16_ring. Format: Bf16 or Fp16 of narrow_floats.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/all_reduce/mpi/compressed/compressed_ring.hpp"
#include "kernels/all_reduce/mpi/compressed/narrow_floats.hpp"
#include "kernels/all_reduce/mpi/reduce.hpp"

namespace stepladder::all_reduce {

template <class Format>
class Codec16 {
 public:
  explicit Codec16(std::int64_t longest) : longest_(longest) {}
  std::int64_t capacity() const { return bytes(longest_); }

  std::int64_t encode(const float* values, std::int64_t count, std::byte* message) const {
    Format::encode(values, count, code(message));
    return bytes(count);
  }
  void decode(const std::byte* message, std::int64_t, float* values, std::int64_t count) const {
    Format::decode(code(message), count, values);
  }
  std::int64_t add_and_encode(const std::byte* received, std::int64_t, const float* values, float*,
                              std::int64_t count, std::byte* message) const {
    Format::add_and_encode(code(received), values, count, code(message));
    return bytes(count);
  }
  // sum = received + values, in blocks, because sum may be values.
  void add(const std::byte* received, std::int64_t, const float* values, float* sum,
           std::int64_t count) const {
    constexpr std::int64_t block = 1024;
    alignas(64) float decoded[block];
    for (std::int64_t at = 0; at < count; at += block) {
      const std::int64_t length = std::min(block, count - at);
      Format::decode(code(received) + Format::code_length(at), length, decoded);
      all_reduce::add(decoded, values + at, sum + at, length);
    }
  }

 private:
  static std::int64_t bytes(std::int64_t count) { return 2 * Format::code_length(count); }
  static std::uint16_t* code(std::byte* message) {
    return reinterpret_cast<std::uint16_t*>(message);
  }
  static const std::uint16_t* code(const std::byte* message) {
    return reinterpret_cast<const std::uint16_t*>(message);
  }

  std::int64_t longest_;
};

}  // namespace stepladder::all_reduce

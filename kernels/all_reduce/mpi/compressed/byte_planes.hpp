// The bytes of floats of the same significance, next to each other: exponents, which repeat, apart
// from the last bits of the significand, which do not.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stepladder::all_reduce {

// planes: [4][count]. The float is first rotated left by one bit, so that plane 3 holds the whole
// exponent and the sign is the lowest bit of plane 0.
void split_planes(const float* values, std::int64_t count, std::byte* planes);
void join_planes(const std::byte* planes, std::int64_t count, float* values);

}  // namespace stepladder::all_reduce

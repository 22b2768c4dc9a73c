// The order that makes pairs of two vectors of 16 numbers in 16 bits, which stand one behind the
// other: number i of the first and number i of the second.
#pragma once

#include <cstdint>

namespace stepladder::narrow {

alignas(64) inline constexpr std::uint16_t interleaved[32] = {
    0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
    8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};

}  // namespace stepladder::narrow

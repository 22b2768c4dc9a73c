#include "kernels/all_reduce/mpi/compressed/byte_planes.hpp"

#include <bit>

#include "kernels/common/cpu/instructions.hpp"

namespace stepladder::all_reduce {

STEPLADDER_CLONES void split_planes(const float* values, std::int64_t count, std::byte* planes) {
  for (int plane = 0; plane < 4; ++plane) {
    std::byte* to = planes + plane * count;
    for (std::int64_t i = 0; i < count; ++i)
      to[i] = static_cast<std::byte>(std::rotl(std::bit_cast<std::uint32_t>(values[i]), 1) >>
                                     (8 * plane));
  }
}

STEPLADDER_CLONES void join_planes(const std::byte* planes, std::int64_t count, float* values) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) {
    const auto byte = [&](int plane) {
      return static_cast<std::uint32_t>(planes[plane * count + i]) << (8 * plane);
    };
    values[i] = std::bit_cast<float>(std::rotr(byte(0) | byte(1) | byte(2) | byte(3), 1));
  }
}

}  // namespace stepladder::all_reduce

// The outputs that read the image, and not its padding, through one row or column of the kernel.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/common/cpu/partition.hpp"
#include "kernels/common/integer_math.hpp"

namespace stepladder::convolution {

// The outputs q in [0, outputs) with 0 <= q · stride + offset < size; offset = s − pad for kernel
// column s. The range is empty if begin >= end. Static: files for several ISAs include it.
static inline Range valid_range(std::int64_t size, std::int64_t outputs, std::int64_t stride,
                                std::int64_t offset) {
  const std::int64_t begin = offset >= 0 ? 0 : ceil_div(-offset, stride);
  const std::int64_t end = size <= offset ? 0 : (size - 1 - offset) / stride + 1;
  return {std::min(begin, outputs), std::min(end, outputs)};
}

}  // namespace stepladder::convolution

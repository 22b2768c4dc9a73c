// Which outputs see the image, and not the padding, through one row or column of the kernel.
#pragma once

#include <algorithm>
#include <cstdint>

namespace stepladder::convolution {

struct Range {
  std::int64_t first, last;  // [first, last)
};

// The outputs q in [0, outputs) for which 0 <= q · stride + offset < size; offset = s − pad for the
// kernel's column s. Static: files for several instruction sets include it.
static inline Range inside(std::int64_t size, std::int64_t outputs, std::int64_t stride,
                           std::int64_t offset) {
  const std::int64_t first = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
  const std::int64_t last = size <= offset ? 0 : (size - 1 - offset) / stride + 1;
  return {std::min(first, outputs), std::min(last, outputs)};
}

}  // namespace stepladder::convolution

// The image as the lattice reads it without unfolding: in place, or in a copy with its padding.
#pragma once

#include <algorithm>

#include "kernels/convolution/convolution.hpp"

namespace stepladder::convolution::inline STEPLADDER_ISA {

template <bool padded>
struct Image {
  explicit Image(const Problem& p)
      : height(padded ? p.height + 2 * p.pad_h : p.height),
        width(padded ? p.width + 2 * p.pad_w : p.width),
        pad_h(padded ? 0 : p.pad_h),
        pad_w(padded ? 0 : p.pad_w) {}

  // x [group_in, height, width] of the problem, or its copy in `work`, whose padding is 0 already.
  const float* read(const Problem& p, const float* x, float* work) const {
    if constexpr (!padded) return x;
    for (std::int64_t i = 0; i < p.group_in(); ++i)
      for (std::int64_t h = 0; h < p.height; ++h)
        std::copy_n(x + (i * p.height + h) * p.width, p.width,
                    work + (i * height + h + p.pad_h) * width + p.pad_w);
    return work;
  }

  std::int64_t height, width;  // as they are read
  std::int64_t pad_h, pad_w;   // that is not in the image
};

}  // namespace stepladder::convolution::inline STEPLADDER_ISA

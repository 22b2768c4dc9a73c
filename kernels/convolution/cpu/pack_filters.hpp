// Weights packed for the register tiles of forward and backward_data, which read one vector or
// broadcast per target channel and tap.
#pragma once

#include <cstdint>

#include "kernels/common/cpu/partition.hpp"
#include "kernels/common/cpu/transpose.hpp"
#include "kernels/convolution/axis.hpp"

namespace stepladder::convolution::inline STEPLADDER_ISA {

// to[c - sources.begin, t, u, i] = the weight of tap (t, u) from source channel c to target channel
// targets.begin + i, of one group; rows of i are `pitch` apart. weights: [out, in, height, width]
inline void pack_filters(const Problem& p, const Correlation& correlation, const float* weights,
                         std::int64_t group, const Range& sources, const Range& targets,
                         std::int64_t pitch, float* to) {
  const auto& [h, w] = correlation;
  const std::int64_t plane = p.kernel_h * p.kernel_w, filter = p.group_in() * plane;
  const std::int64_t channels = targets.end - targets.begin;
  const float* group_weights = weights + group * p.group_out() * filter;
  if (p.direction == Direction::forward) {
    transpose(group_weights + targets.begin * filter + sources.begin * plane, filter, to, pitch,
              channels, (sources.end - sources.begin) * plane);
    return;
  }
  const float* from = group_weights + sources.begin * filter + targets.begin * plane;
  for (std::int64_t c = sources.begin; c < sources.end; ++c, from += filter) {
    if (h.taps * w.taps == plane) {  // the whole kernel, rotated by 180 degrees
      transpose(from, plane, to + (plane - 1) * pitch, -pitch, channels, plane);
      to += plane * pitch;
      continue;
    }
    for (std::int64_t t = 0; t < h.taps; ++t)
      for (std::int64_t u = 0; u < w.taps; ++u, to += pitch) {
        const float* tap = from + (h.kernel_first + t * h.kernel_step) * p.kernel_w +
                           w.kernel_first + u * w.kernel_step;
        for (std::int64_t i = 0; i < channels; ++i) to[i] = tap[i * plane];
      }
  }
}

}  // namespace stepladder::convolution::inline STEPLADDER_ISA

// One dimension, height or width, of a correlation: a sliding dot product of a source with filters.
// forward is one correlation from x to y. backward_data is one from dy to dx for each remainder of
// the index modulo the stride, with the filter taps in reverse order.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/convolution/convolution.hpp"

namespace stepladder::convolution {

// Target pixel a, a < pixels, is element first + a · step of the target. It is the sum over the
// taps t, t < taps, of source element a · stride + t + origin (zero outside the source) times
// filter element kernel_first + t · kernel_step.
struct Axis {
  std::int64_t source, target;  // sizes
  std::int64_t pixels, first, step;
  std::int64_t stride, taps, origin;
  std::int64_t kernel_first, kernel_step;

  // One tap, and target index = source index: the image can be treated as one long row.
  bool pointwise() const {
    return taps == 1 && stride == 1 && step == 1 && origin == 0 && source == target;
  }
};

// Correlation from x to y.
Axis forward_axis(std::int64_t x, std::int64_t y, std::int64_t kernel, std::int64_t stride,
                  std::int64_t pad);

// Correlation from dy to the elements of dx with index % stride == remainder, which all use the
// same filter elements. taps is 0 if there are none.
Axis backward_axis(std::int64_t x, std::int64_t y, std::int64_t kernel, std::int64_t stride,
                   std::int64_t pad, std::int64_t remainder);

struct Correlation {
  Axis h, w;
};

Correlation forward_correlation(const Problem& problem);  // whatever its direction

// forward, or the classes of pixels of backward_data, stride_h · stride_w of them at most.
struct Correlations {
  std::int64_t source_channels, target_channels;  // of one group
  std::vector<Correlation> all;
  bool untouched_pixels = false;  // dx has pixels that no filter element reaches
};

Correlations correlations_of(const Problem& problem);  // not of backward_weights

}  // namespace stepladder::convolution

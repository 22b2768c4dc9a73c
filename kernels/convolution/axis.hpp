// One dimension, height or width, of a correlation, by which both forward and backward_data can be
// described.
#pragma once

#include <cstdint>

namespace stepladder::convolution {

// Target pixel a, a < pixels, lies at first + a · step of the target. For tap t, t < taps, it reads
// element a · stride + t + origin of the source (zero outside), times kernel element
// kernel_first + t · kernel_step.
struct Axis {
  std::int64_t source, target;  // sizes
  std::int64_t pixels, first, step;
  std::int64_t stride, taps, origin;
  std::int64_t kernel_first, kernel_step;

  // One tap that keeps every pixel in its place: then it does not matter where rows end.
  bool pointwise() const {
    return taps == 1 && stride == 1 && step == 1 && origin == 0 && source == target;
  }
};

// From x to y.
Axis forward_axis(std::int64_t x, std::int64_t y, std::int64_t kernel, std::int64_t stride,
                  std::int64_t pad);

// From dy to the elements of dx with index % stride == remainder. They all use the same elements of
// the kernel, which may be none: then taps is 0.
Axis backward_axis(std::int64_t x, std::int64_t y, std::int64_t kernel, std::int64_t stride,
                   std::int64_t pad, std::int64_t remainder);

}  // namespace stepladder::convolution

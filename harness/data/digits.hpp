// Draws handwriting-like digits: a style of the digit with jittered control points, distorted by a
// random affine map, inked with a round pen, blurred, with noise. The same seed gives the same
// bytes on every machine: points are rounded to 1/256 pixel, and all that follows is integer
// arithmetic.
#pragma once

#include <cstdint>
#include <span>

#include "harness/problem/random.hpp"

namespace stepladder::data {

inline constexpr int digit_side = 28;

// Rises whenever the same seed would draw other pixels.
inline constexpr int generator_version = 1;

// Bright on black, as MNIST is. pixels: [28, 28].
void draw_digit(int digit, Random& random, std::span<std::uint8_t> pixels);

// In a random colour on a background of another brightness with coloured clouds, within the
// middle 24x24 pixels but for the boldest strokes. pixels: [3, 32, 32], as CIFAR-10 stores them.
void draw_coloured_digit(int digit, Random& random, std::span<std::uint8_t> pixels);

}  // namespace stepladder::data

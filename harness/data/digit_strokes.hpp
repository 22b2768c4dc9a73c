// How each digit is written by hand, as strokes of a pen.
#pragma once

#include <span>
#include <vector>

namespace stepladder::data {

struct Point {
  double x;  // rightwards, 0..1 over the digit's box
  double y;  // downwards, 0..1 over the digit's box
};

struct Stroke {
  enum class Shape {
    straight,  // lines from point to point
    curve,     // a Catmull-Rom spline through the points
    loop,      // the same, from the last point back to the first
  };
  Shape shape;
  std::vector<Point> points;  // two or more
};

using Style = std::vector<Stroke>;  // one way to write a digit

// The ways to write `digit` (0..9), each as likely as the others.
std::span<const Style> styles_of(int digit);

}  // namespace stepladder::data

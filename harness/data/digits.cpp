#include "harness/data/digits.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <vector>

#include "harness/data/cifar.hpp"
#include "harness/data/digit_strokes.hpp"

namespace stepladder::data {
namespace {

constexpr double digit_height = 20.0;  // pixels of an undistorted digit, as in MNIST
constexpr std::int64_t unit = 256;     // fixed point: parts of a pixel, and full coverage

struct FixedPoint {
  std::int64_t x, y;  // 1/256 pixel
};

struct Segment {
  FixedPoint a, b;
};

// In [low, high).
double between(Random& random, double low, double high) {
  constexpr std::int64_t steps = std::int64_t{1} << 53;
  return low + (high - low) * (static_cast<double>(random.integer(0, steps - 1)) * 0x1p-53);
}

int below(Random& random, int bound) { return static_cast<int>(random.integer(0, bound - 1)); }

// Bell-shaped around 0, in integers: the sum of four uniform numbers of 15 bits less its mean.
std::int64_t bell(Random& random) {
  constexpr std::int64_t mask = 0x7fff;
  const std::int64_t bits = random.integer(0, (std::int64_t{1} << 60) - 1);
  return (bits & mask) + (bits >> 15 & mask) + (bits >> 30 & mask) + (bits >> 45) - 2 * mask;
}
constexpr std::int64_t bell_deviation = 18919;  // sqrt(4 * 2^30 / 12)

FixedPoint operator-(FixedPoint p, FixedPoint q) { return {p.x - q.x, p.y - q.y}; }
std::int64_t dot(FixedPoint p, FixedPoint q) { return p.x * q.x + p.y * q.y; }
std::int64_t cross(FixedPoint p, FixedPoint q) { return p.x * q.y - p.y * q.x; }

// p' = matrix (p - centre of the box) + centre of the image
class Distortion {
 public:
  Distortion(Random& random, int side) {
    // Rotation by an angle with tan(angle / 2) = t, up to 18 degrees.
    const double t = between(random, -0.16, 0.16);
    const double cosine = (1 - t * t) / (1 + t * t);
    const double sine = 2 * t / (1 + t * t);
    const double shear = between(random, -0.35, 0.35);
    const double scale_x = digit_height * between(random, 0.70, 1.05);
    const double scale_y = digit_height * between(random, 0.80, 1.05);
    // rotation * shear * scale
    xx_ = cosine * scale_x;
    xy_ = (cosine * shear - sine) * scale_y;
    yx_ = sine * scale_x;
    yy_ = (sine * shear + cosine) * scale_y;
    x_ = side / 2.0 + between(random, -2.5, 2.5);
    y_ = side / 2.0 + between(random, -2.5, 2.5);
  }

  FixedPoint operator()(Point p) const {
    const double x = p.x - 0.5;
    const double y = p.y - 0.5;
    return {round(x_ + xx_ * x + xy_ * y), round(y_ + yx_ * x + yy_ * y)};
  }

 private:
  static std::int64_t round(double pixels) {
    return static_cast<std::int64_t>(std::floor(pixels * unit + 0.5));
  }

  double xx_, xy_, yx_, yy_;  // pixels per unit of the box
  double x_, y_;              // pixels
};

Point catmull_rom(Point p0, Point p1, Point p2, Point p3, double t) {
  const auto along = [t](double a, double b, double c, double d) {
    return b + 0.5 * t * (c - a + t * (2 * a - 5 * b + 4 * c - d + t * (3 * (b - c) + d - a)));
  };
  return {along(p0.x, p1.x, p2.x, p3.x), along(p0.y, p1.y, p2.y, p3.y)};
}

// The stroke as points that straight lines join.
std::vector<Point> flatten(const Stroke& stroke) {
  const std::vector<Point>& points = stroke.points;
  if (stroke.shape == Stroke::Shape::straight) return points;

  constexpr int pieces = 5;  // between two control points
  const bool loop = stroke.shape == Stroke::Shape::loop;
  const auto n = static_cast<std::ptrdiff_t>(points.size());
  const auto at = [&](std::ptrdiff_t i) {
    return points[static_cast<std::size_t>(loop ? (i + n) % n
                                                : std::clamp<std::ptrdiff_t>(i, 0, n - 1))];
  };
  std::vector<Point> line{points.front()};
  for (std::ptrdiff_t i = 0; i < (loop ? n : n - 1); ++i) {
    for (int piece = 1; piece <= pieces; ++piece) {
      line.push_back(
          catmull_rom(at(i - 1), at(i), at(i + 1), at(i + 2), static_cast<double>(piece) / pieces));
    }
  }
  return line;
}

// Close to the standard normal distribution, never beyond 3.5.
double jitter(Random& random) { return static_cast<double>(bell(random)) / bell_deviation; }

std::vector<Segment> write_digit(int digit, Random& random, int side) {
  const std::span<const Style> styles = styles_of(digit);
  const int style = below(random, static_cast<int>(styles.size()));
  const Distortion distortion(random, side);
  std::vector<Segment> segments;
  for (Stroke stroke : styles[static_cast<std::size_t>(style)]) {
    for (Point& point : stroke.points) {
      point.x += 0.045 * jitter(random);
      point.y += 0.04 * jitter(random);
    }
    const std::vector<Point> line = flatten(stroke);
    for (std::size_t i = 1; i < line.size(); ++i) {
      segments.push_back({distortion(line[i - 1]), distortion(line[i])});
    }
  }
  return segments;
}

std::int64_t squared_distance(FixedPoint p, const Segment& segment) {
  const FixedPoint direction = segment.b - segment.a;
  const FixedPoint from_a = p - segment.a;
  const std::int64_t along = dot(from_a, direction);
  const std::int64_t length_squared = dot(direction, direction);
  if (along <= 0) return dot(from_a, from_a);
  if (along >= length_squared) return dot(p - segment.b, p - segment.b);
  const std::int64_t area = cross(from_a, direction);
  return area * area / length_squared;
}

// Largest root with root * root <= value; only an estimate comes from floating point.
std::int64_t integer_root(std::int64_t value) {
  auto root = static_cast<std::int64_t>(std::sqrt(static_cast<double>(value)));
  while (root * root > value) --root;
  while ((root + 1) * (root + 1) <= value) ++root;
  return root;
}

// Ink 0..256 on each pixel, [side, side]: full within `radius` of a stroke, fading over one pixel.
std::vector<int> ink(const std::vector<Segment>& segments, std::int64_t radius, int side) {
  const std::int64_t reach = radius + unit / 2;
  std::vector<std::int64_t> nearest(static_cast<std::size_t>(side) * side, reach * reach);
  for (const Segment& s : segments) {
    const auto first = [&](std::int64_t a, std::int64_t b) {
      return std::max<std::int64_t>(0, (std::min(a, b) - reach) / unit);
    };
    const auto last = [&](std::int64_t a, std::int64_t b) {
      return std::min<std::int64_t>(side - 1, (std::max(a, b) + reach) / unit);
    };
    for (std::int64_t y = first(s.a.y, s.b.y); y <= last(s.a.y, s.b.y); ++y) {
      for (std::int64_t x = first(s.a.x, s.b.x); x <= last(s.a.x, s.b.x); ++x) {
        const FixedPoint centre{x * unit + unit / 2, y * unit + unit / 2};
        std::int64_t& distance = nearest[static_cast<std::size_t>(y * side + x)];
        distance = std::min(distance, squared_distance(centre, s));
      }
    }
  }
  std::vector<int> coverage(nearest.size());
  std::transform(nearest.begin(), nearest.end(), coverage.begin(), [&](std::int64_t squared) {
    return static_cast<int>(std::clamp<std::int64_t>(reach - integer_root(squared), 0, unit));
  });
  return coverage;
}

// Convolves rows, then columns, with (w, 256 - 2w, w) / 256; outside the image there is no ink.
std::vector<int> blur(std::vector<int> image, int side, int weight) {
  std::vector<int> blurred(image.size());
  for (const int step : {1, side}) {
    for (int i = 0; i < side * side; ++i) {
      const int position = step == 1 ? i % side : i / side;
      const int before = position > 0 ? image[i - step] : 0;
      const int after = position < side - 1 ? image[i + step] : 0;
      blurred[i] = (weight * (before + after) + (256 - 2 * weight) * image[i] + 128) / 256;
    }
    std::swap(image, blurred);
  }
  return image;
}

// The digit's mask, [side, side], 0..256.
std::vector<int> draw_mask(int digit, Random& random, int side) {
  const std::vector<Segment> segments = write_digit(digit, random, side);
  const auto radius = static_cast<std::int64_t>(between(random, 0.7, 1.7) * unit);
  const auto weight = below(random, 56);
  return blur(ink(segments, radius, side), side, weight);
}

std::uint8_t with_noise(int value, int deviation, Random& random) {
  const std::int64_t noise = bell(random) * deviation / bell_deviation;
  return static_cast<std::uint8_t>(std::clamp<std::int64_t>(value + noise, 0, 255));
}

using Colour = std::array<int, cifar_channels>;  // red, green, blue, 0..255

Colour random_colour(Random& random) {
  Colour colour{};
  for (int& value : colour) value = below(random, 256);
  return colour;
}

int brightness(const Colour& colour) {
  return (77 * colour[0] + 150 * colour[1] + 29 * colour[2]) / 256;
}

Colour contrasting_colour(const Colour& background, Random& random) {
  for (;;) {
    const Colour colour = random_colour(random);
    if (std::abs(brightness(colour) - brightness(background)) >= 96) return colour;
  }
}

// One channel of a background, [32, 32]: random values on a lattice of 8 pixels around `base`,
// interpolated between.
std::vector<int> clouds(int base, int height, Random& random) {
  constexpr int cell = 8;
  constexpr std::size_t corners = cifar_side / cell + 1;
  std::array<int, corners * corners> lattice{};
  for (int& value : lattice) {
    value = base + below(random, 2 * height + 1) - height;
  }
  std::vector<int> values;
  values.reserve(std::size_t{cifar_side} * cifar_side);
  for (int y = 0; y < cifar_side; ++y) {
    for (int x = 0; x < cifar_side; ++x) {
      const int* corner = &lattice[y / cell * corners + x / cell];
      const int right = x % cell;
      const int down = y % cell;
      const int top = (cell - right) * corner[0] + right * corner[1];
      const int bottom = (cell - right) * corner[corners] + right * corner[corners + 1];
      values.push_back(((cell - down) * top + down * bottom) / (cell * cell));
    }
  }
  return values;
}

}  // namespace

void draw_digit(int digit, Random& random, std::span<std::uint8_t> pixels) {
  const std::vector<int> mask = draw_mask(digit, random, digit_side);
  const int brightest = 190 + below(random, 66);
  const int noise = below(random, 25);
  for (std::size_t i = 0; i < mask.size(); ++i) {
    pixels[i] = with_noise(mask[i] * brightest / 256, noise, random);
  }
}

void draw_coloured_digit(int digit, Random& random, std::span<std::uint8_t> pixels) {
  const std::vector<int> mask = draw_mask(digit, random, cifar_side);
  const Colour background = random_colour(random);
  const Colour foreground = contrasting_colour(background, random);
  const int height = below(random, 48);
  const int noise = below(random, 16);
  for (std::size_t channel = 0; channel < cifar_channels; ++channel) {
    const std::vector<int> behind = clouds(background[channel], height, random);
    const auto plane = pixels.subspan(channel * mask.size(), mask.size());
    for (std::size_t i = 0; i < mask.size(); ++i) {
      const int value = behind[i] + (foreground[channel] - behind[i]) * mask[i] / 256;
      plane[i] = with_noise(value, noise, random);
    }
  }
}

}  // namespace stepladder::data

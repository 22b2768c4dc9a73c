#include "harness/data/generated.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <utility>
#include <vector>

#include "harness/problem/random.hpp"

namespace stepladder::data {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr int templates_per_class = 4;
constexpr int noise = 60;  // largest change of a pixel, of 255

int below(Random& random, int bound) { return static_cast<int>(random.integer(0, bound - 1)); }

// The templates are larger than the images by `margin` on each side: an image is a window of one.
class Templates {
 public:
  Templates(const ImageFormat& format, std::uint64_t seed)
      : format_(format),
        margin_(std::min(format.height, format.width) / 10),
        height_(format.height + 2 * margin_),
        width_(format.width + 2 * margin_) {
    Random random(seed, "templates");
    for (int i = 0; i < format.classes * templates_per_class * format.channels; ++i)
      append_plane(random);
  }

  // Appends an image of the class to `images`: [channels, height, width].
  void append_image(int label, Random& random, Bytes& images) const {
    const int chosen = label * templates_per_class + below(random, templates_per_class);
    const int top = below(random, 2 * margin_ + 1), left = below(random, 2 * margin_ + 1);
    const int contrast = static_cast<int>(random.integer(96, 224));  // of 256
    for (int channel = 0; channel < format_.channels; ++channel)
      for (int y = 0; y < format_.height; ++y) {
        const std::uint8_t* row =
            &planes_[index(chosen * format_.channels + channel, top + y, left)];
        for (int x = 0; x < format_.width; ++x) {
          const int value = 128 + (row[x] - 128) * contrast / 256 +
                            static_cast<int>(random.integer(-noise, noise));
          images.push_back(static_cast<std::uint8_t>(std::clamp(value, 0, 255)));
        }
      }
  }

 private:
  std::size_t index(int plane, int y, int x) const {
    return (static_cast<std::size_t>(plane) * static_cast<std::size_t>(height_) +
            static_cast<std::size_t>(y)) *
               static_cast<std::size_t>(width_) +
           static_cast<std::size_t>(x);
  }

  // Bilinear interpolation of random values on a grid, about seven cells to an image.
  void append_plane(Random& random) {
    const int cell = std::max(1, std::min(format_.height, format_.width) / 7);
    const int columns = width_ / cell + 2;
    std::vector<int> grid(static_cast<std::size_t>((height_ / cell + 2) * columns));
    for (int& value : grid) value = below(random, 256);
    for (int y = 0; y < height_; ++y)
      for (int x = 0; x < width_; ++x) {
        const int down = y % cell, right = x % cell;
        const int* corner = grid.data() + y / cell * columns + x / cell;
        const int upper = corner[0] * (cell - right) + corner[1] * right;
        const int lower = corner[columns] * (cell - right) + corner[columns + 1] * right;
        planes_.push_back(
            static_cast<std::uint8_t>((upper * (cell - down) + lower * down) / (cell * cell)));
      }
  }

  ImageFormat format_;
  int margin_, height_, width_;
  Bytes planes_;  // [classes, templates_per_class, channels, height_, width_]
};

Dataset draw(const ImageFormat& format, const Templates& templates, int count, Random random) {
  Dataset set{format.channels, format.height, format.width, format.classes, {}, {}, "generated"};
  for (int i = 0; i < count; ++i)
    set.labels.push_back(static_cast<std::uint8_t>(i % format.classes));
  shuffle(set.labels, random);
  Bytes pixels;
  pixels.reserve(set.labels.size() * set.image_size());
  for (const std::uint8_t label : set.labels) templates.append_image(label, random, pixels);
  set.images = unit_interval(pixels);
  return set;
}

}  // namespace

DatasetPair generate(const ImageFormat& format, int train, int test, std::uint64_t seed) {
  if (std::min({format.channels, format.height, format.width, format.classes, train, test}) < 1 ||
      format.classes > 256) {
    throw std::invalid_argument(fmt::format(
        "cannot generate {} + {} images of {}x{}x{} in {} classes: expected positive sizes and at "
        "most 256 classes",
        train, test, format.channels, format.height, format.width, format.classes));
  }
  const Templates templates(format, seed);
  return {draw(format, templates, train, Random(seed, "train")),
          draw(format, templates, test, Random(seed, "test"))};
}

}  // namespace stepladder::data

#include "harness/data/dataset.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace stepladder::data {

Dataset crop(const Dataset& dataset, int height, int width) {
  if (height < 1 || width < 1 || height > dataset.height || width > dataset.width) {
    throw std::invalid_argument(
        fmt::format("cannot crop images of {}x{} to {}x{}: expected 1x1 up to the images' own size",
                    dataset.height, dataset.width, height, width));
  }
  Dataset cropped{dataset.channels, height,        width, dataset.classes, {},
                  dataset.labels,   dataset.origin};
  cropped.images.resize(cropped.labels.size() * cropped.image_size());

  const int top = (dataset.height - height) / 2;
  const int left = (dataset.width - width) / 2;
  const std::size_t planes = dataset.labels.size() * static_cast<std::size_t>(dataset.channels);
  const float* source = dataset.images.data();
  float* target = cropped.images.data();
  for (std::size_t plane = 0; plane < planes; ++plane) {
    for (int y = 0; y < height; ++y) {
      target = std::copy_n(source + (top + y) * dataset.width + left, width, target);
    }
    source += static_cast<std::ptrdiff_t>(dataset.height) * dataset.width;
  }
  return cropped;
}

std::vector<float> unit_interval(const std::vector<std::uint8_t>& bytes) {
  std::vector<float> values(bytes.size());
  std::transform(bytes.begin(), bytes.end(), values.begin(),
                 [](std::uint8_t byte) { return static_cast<float>(byte) / 255.0F; });
  return values;
}

}  // namespace stepladder::data

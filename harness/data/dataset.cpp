#include "harness/data/dataset.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <stdexcept>

#include "harness/io/hash.hpp"

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

  const std::ptrdiff_t row = dataset.width;
  const std::ptrdiff_t plane = dataset.height * row;
  const std::ptrdiff_t corner = (dataset.height - height) / 2 * row + (dataset.width - width) / 2;
  const auto planes = static_cast<std::ptrdiff_t>(dataset.labels.size()) * dataset.channels;
  float* target = cropped.images.data();
  for (std::ptrdiff_t p = 0; p < planes; ++p) {
    const float* source = dataset.images.data() + p * plane + corner;
    for (int y = 0; y < height; ++y) target = std::copy_n(source + y * row, width, target);
  }
  return cropped;
}

std::vector<float> unit_interval(const std::vector<std::uint8_t>& bytes) {
  std::vector<float> values(bytes.size());
  std::transform(bytes.begin(), bytes.end(), values.begin(),
                 [](std::uint8_t byte) { return static_cast<float>(byte) / 255.0F; });
  return values;
}

std::string hash_of(const DatasetPair& data) {
  std::uint64_t hash = fnv1a_basis;
  for (const Dataset* set : {&data.train, &data.test}) {
    hash = fnv1a(std::as_bytes(std::span(set->images)), hash);
    hash = fnv1a(std::as_bytes(std::span(set->labels)), hash);
  }
  return fmt::format("{:016x}", hash);
}

}  // namespace stepladder::data

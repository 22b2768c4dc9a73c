#include "harness/data/normalization.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <stdexcept>

namespace stepladder::data {
namespace {

// Calls body(channel, first pixel, number of pixels) for every plane of every image.
template <class Images, class Body>
void for_each_plane(const Dataset& dataset, Images& images, Body body) {
  const auto channels = static_cast<std::size_t>(dataset.channels);
  const std::size_t plane = dataset.image_size() / channels;
  for (std::size_t i = 0; i < dataset.labels.size() * channels; ++i) {
    body(i % channels, images.data() + i * plane, plane);
  }
}

}  // namespace

Normalization normalization_of(const Dataset& dataset) {
  const auto channels = static_cast<std::size_t>(dataset.channels);
  std::vector<double> sum(channels), sum_of_squares(channels), pixels(channels);
  for_each_plane(dataset, dataset.images, [&](std::size_t c, const float* plane, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
      sum[c] += plane[i];
      sum_of_squares[c] += static_cast<double>(plane[i]) * plane[i];
    }
    pixels[c] += static_cast<double>(n);
  });

  Normalization normalization;
  for (std::size_t c = 0; c < channels; ++c) {
    const double mean = sum[c] / pixels[c];
    const double variance = sum_of_squares[c] / pixels[c] - mean * mean;
    // The variance of a constant channel is rounding error; dividing by it would amplify noise.
    const bool constant = !(variance > 1e-12);
    normalization.mean.push_back(static_cast<float>(mean));
    normalization.standard_deviation.push_back(constant ? 1.0F
                                                        : static_cast<float>(std::sqrt(variance)));
  }
  return normalization;
}

void normalize(Dataset& dataset, const Normalization& normalization) {
  if (normalization.mean.size() != static_cast<std::size_t>(dataset.channels)) {
    throw std::invalid_argument(
        fmt::format("a normalization of {} channels applied to images of {}",
                    normalization.mean.size(), dataset.channels));
  }
  for_each_plane(dataset, dataset.images, [&](std::size_t c, float* plane, std::size_t n) {
    const float mean = normalization.mean[c];
    const float scale = 1.0F / normalization.standard_deviation[c];
    for (std::size_t i = 0; i < n; ++i) plane[i] = (plane[i] - mean) * scale;
  });
}

void normalize(DatasetPair& pair) {
  const Normalization normalization = normalization_of(pair.train);
  normalize(pair.train, normalization);
  normalize(pair.test, normalization);
}

}  // namespace stepladder::data

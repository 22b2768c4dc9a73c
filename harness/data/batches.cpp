#include "harness/data/batches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace stepladder::data {

Batches::Batches(const Dataset& dataset, int batch, std::uint64_t seed, int shift)
    : dataset_(dataset),
      batch_(batch),
      shift_(shift),
      random_(seed),
      order_(dataset.labels.size()) {
  if (shift < 0)
    throw std::invalid_argument(
        fmt::format("images shifted by {} pixels: expected 0 or more", shift));
  if (batch < 1 || batch > dataset.count()) {
    throw std::invalid_argument(
        fmt::format("a batch of {} images from a data set of {}: expected 1 to {}", batch,
                    dataset.count(), dataset.count()));
  }
  std::iota(order_.begin(), order_.end(), 0);
  shuffle(order_, random_);
}

void Batches::next(std::span<float> x, std::span<std::uint8_t> labels) {
  const std::size_t size = dataset_.image_size();
  const auto batch = static_cast<std::size_t>(batch_);
  if (x.size() != batch * size || labels.size() != batch) {
    throw std::invalid_argument(
        fmt::format("a batch has {} floats and {} labels; the spans hold {} and {}", batch * size,
                    batch, x.size(), labels.size()));
  }
  if (position_ + batch > order_.size()) {
    shuffle(order_, random_);
    position_ = 0;
    ++epoch_;
  }
  for (std::size_t i = 0; i < batch; ++i) {
    const auto image = static_cast<std::size_t>(order_[position_ + i]);
    copy_shifted(dataset_.images.data() + image * size, x.data() + i * size);
    labels[i] = dataset_.labels[image];
  }
  position_ += batch;
}

void Batches::copy_shifted(const float* image, float* to) {
  if (shift_ == 0) {
    std::copy_n(image, dataset_.image_size(), to);
    return;
  }
  const auto down = static_cast<int>(random_.integer(-shift_, shift_));
  const auto right = static_cast<int>(random_.integer(-shift_, shift_));
  const int height = dataset_.height, width = dataset_.width;
  for (int channel = 0; channel < dataset_.channels; ++channel)
    for (int y = 0; y < height; ++y) {
      const float* row = image + static_cast<std::ptrdiff_t>(channel * height +
                                                             std::clamp(y - down, 0, height - 1)) *
                                     width;
      for (int x = 0; x < width; ++x) *to++ = row[std::clamp(x - right, 0, width - 1)];
    }
}

}  // namespace stepladder::data

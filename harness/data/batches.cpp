#include "harness/data/batches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace stepladder::data {
namespace {

void copy_shifted(const Dataset& dataset, const float* image, int down, int right, float* to) {
  const int height = dataset.height, width = dataset.width;
  for (int channel = 0; channel < dataset.channels; ++channel)
    for (int y = 0; y < height; ++y) {
      const float* row = image + static_cast<std::ptrdiff_t>(channel * height +
                                                             std::clamp(y - down, 0, height - 1)) *
                                     width;
      for (int x = 0; x < width; ++x) *to++ = row[std::clamp(x - right, 0, width - 1)];
    }
}

}  // namespace

Batches::Batches(const Dataset& dataset, int batch, std::uint64_t seed, int shift)
    : dataset_(dataset), batch_(batch), shift_(shift), seed_(seed), order_(dataset.labels.size()) {
  if (shift < 0)
    throw std::invalid_argument(
        fmt::format("images shifted by {} pixels: expected 0 or more", shift));
  if (batch < 1 || batch > dataset.count()) {
    throw std::invalid_argument(
        fmt::format("a batch of {} images from a data set of {}: expected 1 to {}", batch,
                    dataset.count(), dataset.count()));
  }
}

void Batches::shuffle_for(std::int64_t epoch) {
  if (epoch == epoch_) return;
  epoch_ = epoch;
  std::iota(order_.begin(), order_.end(), 0);
  Random random(seed_, fmt::format("epoch {}", epoch));
  shuffle(order_, random);
}

void Batches::draw(std::int64_t number, int first, std::span<float> x,
                   std::span<std::uint8_t> labels) {
  const std::size_t size = dataset_.image_size();
  const auto count = static_cast<int>(labels.size());
  if (x.size() != labels.size() * size || first < 0 || first + count > batch_ || number < 0) {
    throw std::invalid_argument(
        fmt::format("images {} to {} of batch {}, {} floats: a batch has {} images of {} floats",
                    first, first + count - 1, number, x.size(), batch_, size));
  }
  shuffle_for(epoch_of(number));
  const auto position = static_cast<std::size_t>(number % per_epoch() * batch_ + first);
  Random random(seed_, fmt::format("shifts of batch {}", number));
  for (int i = 0; shift_ > 0 && i < 2 * first; ++i) random.integer(-shift_, shift_);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto image = static_cast<std::size_t>(order_[position + i]);
    const float* from = dataset_.images.data() + image * size;
    if (shift_ == 0) {
      std::copy_n(from, size, x.data() + i * size);
    } else {
      const auto down = static_cast<int>(random.integer(-shift_, shift_));
      const auto right = static_cast<int>(random.integer(-shift_, shift_));
      copy_shifted(dataset_, from, down, right, x.data() + i * size);
    }
    labels[i] = dataset_.labels[image];
  }
}

}  // namespace stepladder::data

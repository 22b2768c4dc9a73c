#include "harness/data/batches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "harness/data/shuffle.hpp"

namespace stepladder::data {

Batches::Batches(const Dataset& dataset, int batch, std::uint64_t seed)
    : dataset_(dataset), batch_(batch), random_(seed), order_(dataset.labels.size()) {
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
        fmt::format("a batch takes {} floats and {} labels, given room for {} and {}", batch * size,
                    batch, x.size(), labels.size()));
  }
  if (position_ + batch > order_.size()) {
    shuffle(order_, random_);
    position_ = 0;
    ++epoch_;
  }
  for (std::size_t i = 0; i < batch; ++i) {
    const auto image = static_cast<std::size_t>(order_[position_ + i]);
    std::copy_n(dataset_.images.data() + image * size, size, x.data() + i * size);
    labels[i] = dataset_.labels[image];
  }
  position_ += batch;
}

}  // namespace stepladder::data

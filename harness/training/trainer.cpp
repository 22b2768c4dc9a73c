#include "harness/training/trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>

namespace stepladder {

double learning_rate_after(const network::OptimizerDescription& optimizer, std::int64_t samples) {
  if (optimizer.decay_every_samples == 0) return optimizer.learning_rate;
  const std::int64_t times = samples / optimizer.decay_every_samples;
  return optimizer.learning_rate * std::pow(optimizer.decay, static_cast<double>(times));
}

double accuracy_on(TrainableNetwork& network, const data::Dataset& data) {
  const auto batch = static_cast<std::size_t>(network.batch());
  const auto classes = static_cast<std::size_t>(network.description().classes);
  const std::size_t count = data.labels.size(), image = data.image_size();
  std::size_t correct = 0;
  for (std::size_t first = 0; first < count; first += batch) {
    // The last batch overlaps the one before; its first images are not counted again.
    const std::size_t from = std::min(first, count - batch);
    std::copy_n(data.images.data() + from * image, batch * image, network.images().begin());
    network.evaluate();
    for (std::size_t n = first - from; n < batch; ++n) {
      const auto row = network.probabilities().subspan(n * classes, classes);
      const auto predicted = std::max_element(row.begin(), row.end()) - row.begin();
      correct += predicted == data.labels[from + n] ? 1 : 0;
    }
  }
  return static_cast<double>(correct) / static_cast<double>(count);
}

Trainer::Trainer(TrainableNetwork& network, const data::Dataset& data, std::uint64_t seed,
                 int shift)
    : network_(network), batches_(data, static_cast<int>(network.batch()), seed, shift) {}

void Trainer::step() {
  const auto start = std::chrono::steady_clock::now();
  if (!is_prefetched_) draw();
  epoch_ = batches_.epoch();
  learning_rate_ = learning_rate_after(network_.description().optimizer, steps_ * network_.batch());
  network_.start_step(learning_rate_);
  is_prefetched_ = network_.can_prefetch();
  if (is_prefetched_) draw();  // drawn and uploaded while the step runs on the device
  loss_ = network_.finish_step();
  ++steps_;
  seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!std::isfinite(loss_))
    throw std::runtime_error(fmt::format(
        "{}: the loss is {} after step {}: the learning rate {:g} is too high for this network",
        network_.description().name, loss_, steps_, learning_rate_));
}

void Trainer::draw() {
  batches_.next(network_.images(), network_.labels());
  if (network_.can_prefetch()) network_.prefetch_batch();
}

}  // namespace stepladder

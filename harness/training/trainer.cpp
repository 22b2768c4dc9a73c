#include "harness/training/trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <span>
#include <stdexcept>

#include "harness/ranks/communicator.hpp"
#include "harness/ranks/mpi_session.hpp"

namespace stepladder {

double learning_rate_after(const network::OptimizerDescription& optimizer, std::int64_t samples) {
  if (optimizer.decay_every_samples == 0) return optimizer.learning_rate;
  const std::int64_t times = samples / optimizer.decay_every_samples;
  return optimizer.learning_rate * std::pow(optimizer.decay, static_cast<double>(times));
}

void require_finite(double loss, const network::NetworkDescription& network, std::int64_t step,
                    double learning_rate) {
  if (std::isfinite(loss)) return;
  if (step > 1)
    throw std::runtime_error(fmt::format(
        "{}: the loss is {} after step {}: the learning rate {:g} is too high for this network",
        network.name, loss, step, learning_rate));
  throw std::runtime_error(fmt::format(
      "{}: the loss is {} in the first step, before any update: {} too large for this network",
      network.name, loss,
      network.normal_std
          ? fmt::format("the normal_std {:g} of initial_weights is", *network.normal_std)
          : "the input or parameters of layers are"));
}

std::int64_t count_correct(TrainableNetwork& network, const data::Dataset& data, std::size_t first,
                           std::size_t end) {
  const auto batch = static_cast<std::size_t>(network.batch());
  const auto classes = static_cast<std::size_t>(network.description().classes);
  const std::size_t image = data.image_size();
  std::int64_t correct = 0;
  for (; first < end; first += batch) {
    // The last batch overlaps the images before it, which are not counted again.
    const std::size_t from = std::min(first, data.labels.size() - batch);
    std::copy_n(data.images.data() + from * image, batch * image, network.images().begin());
    network.evaluate();
    for (std::size_t n = first; n < std::min(first + batch, end); ++n) {
      const auto row = network.probabilities().subspan((n - from) * classes, classes);
      const auto predicted = std::max_element(row.begin(), row.end()) - row.begin();
      correct += predicted == data.labels[n] ? 1 : 0;
    }
  }
  return correct;
}

double accuracy_on(TrainableNetwork& network, const data::Dataset& data) {
  const std::size_t count = data.labels.size();
  return static_cast<double>(count_correct(network, data, 0, count)) / static_cast<double>(count);
}

double accuracy_over_ranks(TrainableNetwork& network, const data::Dataset& data) {
  const std::size_t count = data.labels.size();
  const auto rank = static_cast<std::size_t>(mpi_session().rank()),
             ranks = static_cast<std::size_t>(mpi_session().ranks());
  auto correct = static_cast<double>(
      count_correct(network, data, count * rank / ranks, count * (rank + 1) / ranks));
  Communicator("the evaluation").sum(std::span<double>(&correct, 1));
  return correct / static_cast<double>(count);
}

Trainer::Trainer(TrainableNetwork& network, const data::Dataset& data, std::uint64_t seed,
                 int shift)
    : network_(network), batches_(data, static_cast<int>(network.batch()), seed, shift) {}

void Trainer::start_at(std::int64_t steps) {
  steps_ = drawn_ = steps;
  is_prefetched_ = false;
}

void Trainer::step() {
  step(learning_rate_after(network_.description().optimizer, steps_ * network_.batch()));
}

void Trainer::step(double learning_rate) {
  const auto start = std::chrono::steady_clock::now();
  if (!is_prefetched_) draw();
  epoch_ = static_cast<int>(batches_.epoch_of(steps_));
  learning_rate_ = learning_rate;
  network_.start_step(learning_rate_);
  is_prefetched_ = network_.can_prefetch();
  if (is_prefetched_) draw();  // drawn and uploaded while the step runs on the device
  loss_ = network_.finish_step();
  ++steps_;
  seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  require_finite(loss_, network_.description(), steps_, learning_rate_);
}

void Trainer::draw() {
  batches_.draw(drawn_++, 0, network_.images(), network_.labels());
  if (network_.can_prefetch()) network_.prefetch_batch();
}

}  // namespace stepladder

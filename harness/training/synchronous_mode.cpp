#include "harness/training/synchronous_mode.hpp"

#include <fmt/format.h>

#include <cmath>
#include <span>

#include "harness/io/hash.hpp"

namespace stepladder {

// The loss is summed over the ranks when it is shown, and in the last step.
void SynchronousMode::train_to(std::int64_t last) {
  while (progress().step < last) {
    const double rate = learning_rate(progress().step);
    double loss = step(rate);
    if (setup().check_ranks) require_equal_weights();
    const std::int64_t number = progress().step + 1;
    if (number == last || number % setup().log_every == 0)
      communicator().sum(std::span<double>(&loss, 1));
    else if (std::isfinite(loss))
      loss = progress().loss;
    finished(loss, rate);
  }
}

void SynchronousMode::require_equal_weights() {
  const std::uint64_t hash = fnv1a(std::as_bytes(std::span(network().parameters())));
  if (!communicator().same_on_all_ranks(hash))
    throw std::runtime_error(
        fmt::format("after step {} the weights differ between ranks", progress().step + 1));
}

}  // namespace stepladder

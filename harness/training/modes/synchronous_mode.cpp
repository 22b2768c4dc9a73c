#include "harness/training/modes/synchronous_mode.hpp"

#include <cmath>
#include <span>

namespace stepladder {

// The loss is summed over the ranks when it is shown, and in the last step.
void SynchronousMode::train_to(std::int64_t last) {
  while (progress().step < last || !may_stop()) {
    const double rate = learning_rate(progress().step);
    double loss = step(rate);
    const std::int64_t number = progress().step + 1;
    check_ranks(number);
    if (number >= last || number % setup().log_every == 0)
      blocked([&] { communicator().sum(std::span<double>(&loss, 1)); });
    else if (std::isfinite(loss))
      loss = progress().loss;
    finished(loss, rate);
  }
}

}  // namespace stepladder

#include <cmath>

#include "kernels/sgd_update/sgd_update.hpp"

namespace stepladder::sgd_update {

Element reference(const Problem& p, double weight, double gradient, double state1, double state2,
                  double learning_rate, std::int64_t step) {
  const double g = p.weight_decay != 0 ? gradient + double{p.weight_decay} * weight : gradient;
  const double rho = p.rho, epsilon = p.epsilon, beta1 = p.beta1, beta2 = p.beta2;
  switch (p.optimizer) {
    case Optimizer::sgd:
      return {-learning_rate * g, state1, state2};
    case Optimizer::momentum: {
      const double v = double{p.momentum} * state1 + g;
      return {-learning_rate * v, v, state2};
    }
    case Optimizer::adagrad: {
      const double s = state1 + g * g;
      return {-learning_rate * g / (std::sqrt(s) + epsilon), s, state2};
    }
    case Optimizer::rmsprop: {
      const double s = rho * state1 + (1 - rho) * g * g;
      return {-learning_rate * g / (std::sqrt(s) + epsilon), s, state2};
    }
    case Optimizer::adadelta: {
      const double s = rho * state1 + (1 - rho) * g * g;
      const double d = std::sqrt(state2 + epsilon) / std::sqrt(s + epsilon) * g;
      return {-learning_rate * d, s, rho * state2 + (1 - rho) * d * d};
    }
    case Optimizer::adam: {
      const double m = beta1 * state1 + (1 - beta1) * g;
      const double s = beta2 * state2 + (1 - beta2) * g * g;
      const auto t = static_cast<double>(step);
      const double m_hat = m / (1 - std::pow(beta1, t)), s_hat = s / (1 - std::pow(beta2, t));
      return {-learning_rate * m_hat / (std::sqrt(s_hat) + epsilon), m, s};
    }
  }
  return {};
}

}  // namespace stepladder::sgd_update

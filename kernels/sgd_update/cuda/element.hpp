// The update of one weight, for CUDA rungs with one thread per weight.
#pragma once

#include <cmath>

#include "kernels/common/host_device.hpp"
#include "kernels/sgd_update/sgd_update.hpp"

namespace stepladder::sgd_update {

// The bias corrections of adam, 1 − β₁ᵗ and 1 − β₂ᵗ, computed once on the host.
struct BiasCorrection {
  BiasCorrection(const Problem& p, std::int64_t step)
      : first(static_cast<float>(1 - std::pow(double{p.beta1}, static_cast<double>(step)))),
        second(static_cast<float>(1 - std::pow(double{p.beta2}, static_cast<double>(step)))) {}
  float first, second;
};

// Updates weight i and its state.
STEPLADDER_HOST_DEVICE inline void update_element(const Problem& p, const Operands& o,
                                                  const BiasCorrection& correction,
                                                  std::int64_t i) {
  float g = o.gradient[i];
  if (p.weight_decay != 0) g += p.weight_decay * o.weights[i];
  switch (p.optimizer) {
    case Optimizer::sgd:
      o.weights[i] -= o.learning_rate * g;
      break;
    case Optimizer::momentum: {
      const float v = p.momentum * o.state1[i] + g;
      o.state1[i] = v;
      o.weights[i] -= o.learning_rate * v;
      break;
    }
    case Optimizer::adagrad: {
      const float s = o.state1[i] + g * g;
      o.state1[i] = s;
      o.weights[i] -= o.learning_rate * g / (std::sqrt(s) + p.epsilon);
      break;
    }
    case Optimizer::rmsprop: {
      const float s = p.rho * o.state1[i] + (1 - p.rho) * g * g;
      o.state1[i] = s;
      o.weights[i] -= o.learning_rate * g / (std::sqrt(s) + p.epsilon);
      break;
    }
    case Optimizer::adadelta: {
      const float s = p.rho * o.state1[i] + (1 - p.rho) * g * g;
      const float u = o.state2[i];
      const float d = std::sqrt(u + p.epsilon) / std::sqrt(s + p.epsilon) * g;
      o.state1[i] = s;
      o.state2[i] = p.rho * u + (1 - p.rho) * d * d;
      o.weights[i] -= o.learning_rate * d;
      break;
    }
    case Optimizer::adam: {
      const float m = p.beta1 * o.state1[i] + (1 - p.beta1) * g;
      const float s = p.beta2 * o.state2[i] + (1 - p.beta2) * g * g;
      o.state1[i] = m;
      o.state2[i] = s;
      o.weights[i] -=
          o.learning_rate * (m / correction.first) / (std::sqrt(s / correction.second) + p.epsilon);
      break;
    }
  }
}

}  // namespace stepladder::sgd_update

// The six update rules. Number is a float or a vector of floats. The optimizer is a template
// argument, so a loop over weights contains one rule and no switch.
//
// Two reorderings of the contract's formulas, within its rounding error: adam's bias corrections
// are folded into the learning rate and ε,
//   lr m̂ / (√ŝ + ε) = lr c / (1 − β₁ᵗ) · m / (√s + c ε),  c = √(1 − β₂ᵗ),
// and adadelta computes the root of a quotient in place of the quotient of two roots.
#pragma once

#include <cmath>
#include <type_traits>

#include "kernels/common/host_device.hpp"
#include "kernels/sgd_update/sgd_update.hpp"

namespace stepladder::sgd_update {

template <Optimizer optimizer>
inline constexpr bool has_state1 = optimizer != Optimizer::sgd;
template <Optimizer optimizer>
inline constexpr bool has_state2 = optimizer == Optimizer::adadelta || optimizer == Optimizer::adam;

template <class Number>
struct Constants {
  Number learning_rate, epsilon;  // with adam's bias corrections
  Number weight_decay, momentum;
  bool decays;  // weight_decay is not 0
  Number rho, one_minus_rho, beta1, one_minus_beta1, beta2, one_minus_beta2;

  Constants(const Problem& p, const Operands& o)
      : learning_rate(o.learning_rate),
        epsilon(p.epsilon),
        weight_decay(p.weight_decay),
        momentum(p.momentum),
        decays(p.weight_decay != 0),
        rho(p.rho),
        one_minus_rho(1 - p.rho),
        beta1(p.beta1),
        one_minus_beta1(1 - p.beta1),
        beta2(p.beta2),
        one_minus_beta2(1 - p.beta2) {
    if (p.optimizer != Optimizer::adam) return;
    const auto t = static_cast<double>(o.step);
    const double c = std::sqrt(1 - std::pow(double{p.beta2}, t));
    learning_rate =
        Number(static_cast<float>(o.learning_rate * c / (1 - std::pow(double{p.beta1}, t))));
    epsilon = Number(static_cast<float>(c * p.epsilon));
  }

  // learning_rate · direction / (√square + ε)
  STEPLADDER_HOST_DEVICE Number step(Number direction, Number square) const {
    using std::sqrt;  // for float; argument-dependent lookup finds xsimd::sqrt
    return learning_rate * direction / (sqrt(square) + epsilon);
  }
  // √(x / y)
  STEPLADDER_HOST_DEVICE Number root_of_quotient(Number x, Number y) const {
    using std::sqrt;
    return sqrt(x / y);
  }
};

// Updates the weight, and the states that the optimizer has. AnyConstants: Constants<Number>, or a
// class derived from it with a faster step() and root_of_quotient().
template <Optimizer optimizer, class AnyConstants, class Number>
STEPLADDER_HOST_DEVICE inline void update(const AnyConstants& c, Number& weight, Number gradient,
                                          Number& state1, Number& state2) {
  const Number g = c.decays ? gradient + c.weight_decay * weight : gradient;
  if constexpr (optimizer == Optimizer::sgd) {
    weight = weight - c.learning_rate * g;
  } else if constexpr (optimizer == Optimizer::momentum) {
    state1 = c.momentum * state1 + g;
    weight = weight - c.learning_rate * state1;
  } else if constexpr (optimizer == Optimizer::adagrad) {
    state1 = state1 + g * g;
    weight = weight - c.step(g, state1);
  } else if constexpr (optimizer == Optimizer::rmsprop) {
    state1 = c.rho * state1 + c.one_minus_rho * g * g;
    weight = weight - c.step(g, state1);
  } else if constexpr (optimizer == Optimizer::adadelta) {
    state1 = c.rho * state1 + c.one_minus_rho * g * g;
    const Number change = c.root_of_quotient(state2 + c.epsilon, state1 + c.epsilon) * g;
    state2 = c.rho * state2 + c.one_minus_rho * change * change;
    weight = weight - c.learning_rate * change;
  } else {
    state1 = c.beta1 * state1 + c.one_minus_beta1 * g;
    state2 = c.beta2 * state2 + c.one_minus_beta2 * g * g;
    weight = weight - c.step(state1, state2);
  }
}

// Calls function(std::integral_constant<Optimizer, optimizer>{}).
template <class Function>
inline void with_optimizer(Optimizer optimizer, const Function& function) {
  switch (optimizer) {
    case Optimizer::sgd:
      return function(std::integral_constant<Optimizer, Optimizer::sgd>{});
    case Optimizer::momentum:
      return function(std::integral_constant<Optimizer, Optimizer::momentum>{});
    case Optimizer::adagrad:
      return function(std::integral_constant<Optimizer, Optimizer::adagrad>{});
    case Optimizer::rmsprop:
      return function(std::integral_constant<Optimizer, Optimizer::rmsprop>{});
    case Optimizer::adadelta:
      return function(std::integral_constant<Optimizer, Optimizer::adadelta>{});
    case Optimizer::adam:
      return function(std::integral_constant<Optimizer, Optimizer::adam>{});
  }
}

}  // namespace stepladder::sgd_update

// The arithmetic of one element, for the CUDA rungs.
#pragma once

#include <cmath>

#include "kernels/common/host_device.hpp"
#include "kernels/layers/layers.hpp"

namespace stepladder::layers {

// relu(NaN) is NaN, so that divergence of a network is noticed.
STEPLADDER_HOST_DEVICE inline float relu(float x) { return x < 0 ? 0 : x; }
STEPLADDER_HOST_DEVICE inline float relu_gradient(float y, float dy) { return y > 0 ? dy : 0; }

STEPLADDER_HOST_DEVICE inline float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }
STEPLADDER_HOST_DEVICE inline float sigmoid_gradient(float y, float dy) { return dy * y * (1 - y); }

STEPLADDER_HOST_DEVICE inline float tanh_gradient(float y, float dy) { return dy * (1 - y * y); }

// Forward: x to y. Backward: dy to dx.
struct Dropout {
  Dropout(const Problem& p, std::int64_t step)
      : key(dropout_key(p.seed, step)),
        threshold(drop_threshold(p.rate)),
        factor(1 / (1 - p.rate)) {}
  STEPLADDER_HOST_DEVICE float operator()(std::int64_t i, float value) const {
    return dropout_hash(key, static_cast<std::uint32_t>(i)) >= threshold ? value * factor : 0;
  }
  std::uint32_t key, threshold;
  float factor;
};

// scale^−beta. The usual beta of 3/4 takes two square roots and no logarithm.
STEPLADDER_HOST_DEVICE inline float to_minus_beta(float scale, float beta) {
  if (beta != 0.75F) return std::pow(scale, -beta);
  const float root = std::sqrt(scale);
  return 1 / (root * std::sqrt(root));
}

// The factors of the sums over the window in local response normalization.
STEPLADDER_HOST_DEVICE inline float forward_factor(const Problem& p) {
  return p.alpha / static_cast<float>(p.size);
}
STEPLADDER_HOST_DEVICE inline float backward_factor(const Problem& p) {
  return 2 * p.alpha * p.beta / static_cast<float>(p.size);
}

}  // namespace stepladder::layers

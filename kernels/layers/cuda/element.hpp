// What the CUDA rungs compute of one element.
#pragma once

#include <cmath>

#include "kernels/common/host_device.hpp"
#include "kernels/layers/layers.hpp"

namespace stepladder::layers {

// Of NaN these give NaN, so that a network that diverges shows.
STEPLADDER_HOST_DEVICE inline float relu(float x) { return x < 0 ? 0 : x; }
STEPLADDER_HOST_DEVICE inline float relu_gradient(float y, float dy) { return y > 0 ? dy : 0; }

STEPLADDER_HOST_DEVICE inline float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }
STEPLADDER_HOST_DEVICE inline float sigmoid_gradient(float y, float dy) { return dy * y * (1 - y); }

STEPLADDER_HOST_DEVICE inline float tanh_gradient(float y, float dy) { return dy * (1 - y * y); }

// What dropout leaves of x, forward, or of dy, backward.
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

// scale^−beta. The usual beta, 3/4, needs two roots and no logarithm.
STEPLADDER_HOST_DEVICE inline float to_minus_beta(float scale, float beta) {
  if (beta != 0.75F) return std::pow(scale, -beta);
  const float root = std::sqrt(scale);
  return 1 / (root * std::sqrt(root));
}

// The factors of local response normalization's sums.
STEPLADDER_HOST_DEVICE inline float forward_factor(const Problem& p) {
  return p.alpha / static_cast<float>(p.size);
}
STEPLADDER_HOST_DEVICE inline float backward_factor(const Problem& p) {
  return 2 * p.alpha * p.beta / static_cast<float>(p.size);
}

}  // namespace stepladder::layers

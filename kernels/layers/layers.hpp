// layers: the operations of a training step other than products, pooling and updates. Activations
// are [batch, channels, spatial]; spatial is height · width, or 1 after a fully connected layer.
//
//   bias      y[n, c, s] += bias[c], in place        dbias[c] = sum over n, s of dy[n, c, s]
//   relu      y = max(x, 0)                          dx = y > 0 ? dy : 0
//   sigmoid   y = 1 / (1 + e^−x)                     dx = dy · y (1 − y)
//   tanh      y = tanh x                             dx = dy · (1 − y²)
//   dropout   y = kept ? x / (1 − rate) : 0          dx = kept ? dy / (1 − rate) : 0    (inverted)
//   local_response_normalization, across `size` channels centred on c (Krizhevsky et al. 2012)
//             scale = k + alpha / size · sum(x²);  y = x · scale^−beta
//             dx = dy · scale^−beta − 2 alpha beta / size · x · sum(dy · y / scale)
//             with sums over the window; backward recomputes scale and y from x
//   softmax_cross_entropy, over channels, spatial = 1; dx is computed in the forward pass
//             y = softmax(x);  loss[n] = −log y[n, label];  dx = (y − one_hot(label)) / batch
#pragma once

#include <cstdint>
#include <string>

#include "kernels/common/host_device.hpp"
#include "kernels/common/variant.hpp"

namespace stepladder::layers {

enum class Layer {
  bias,
  relu,
  sigmoid,
  tanh,
  dropout,
  local_response_normalization,
  softmax_cross_entropy
};
enum class Direction { forward, backward };

struct Problem {
  Layer layer = Layer::relu;
  Direction direction = Direction::forward;
  std::int64_t batch = 0, channels = 0, spatial = 1;
  float rate = 0.5F;       // dropout: the fraction that is dropped, 0 <= rate < 1
  std::uint64_t seed = 0;  // dropout
  std::int64_t size = 5;   // local response normalization: channels of a window, odd
  float alpha = 1e-4F, beta = 0.75F, k = 2.0F;  // local response normalization

  STEPLADDER_HOST_DEVICE std::int64_t count() const { return batch * channels * spatial; }
};

// relu, sigmoid, tanh and dropout may work in place: x == y, dx == dy.
struct Operands {
  float* x = nullptr;           // [batch, channels, spatial]
  float* y = nullptr;           // [batch, channels, spatial]
  float* dy = nullptr;          // [batch, channels, spatial]; read by backward
  float* dx = nullptr;          // [batch, channels, spatial]; written by backward and by softmax
  const float* bias = nullptr;  // [channels]
  float* dbias = nullptr;       // [channels]
  const std::uint8_t* labels = nullptr;  // [batch], each less than channels
  float* loss = nullptr;                 // [batch]
  std::int64_t step = 0;                 // dropout draws a new mask for each step
};

struct Layers {
  static constexpr const char* name = "layers";
  static constexpr const char* plain_layout = "nchw";
  using Problem = layers::Problem;
  using Operands = layers::Operands;
  // Throws Unsupported for the backward pass of softmax_cross_entropy.
  static void require(const Problem& problem, const VariantInfo& info);
};

using Plan = stepladder::Plan<Operands>;
using Registration = stepladder::Registration<Layers>;

const char* name_of(Layer layer);  // "relu", "lrn", "softmax" and so on
bool has(Layer layer, Direction direction);
std::string direction(const Problem& problem);  // "relu_forward" and so on
std::string shape(const Problem& problem);      // "n64 c32 s784"
double flops(const Problem& problem);       // arithmetic operations; a transcendental counts as 1
double bytes_read(const Problem& problem);  // each operand read once
double bytes_written(const Problem& problem);  // each result once

// Dropout keeps element i when dropout_hash(dropout_key(seed, step), i) >= drop_threshold(rate).
// The hash replaces a stored mask: every variant drops the same elements, in any order and on any
// number of threads. It uses 32-bit operations only, which vectorize.
STEPLADDER_HOST_DEVICE inline std::uint32_t dropout_hash(std::uint32_t key, std::uint32_t index) {
  std::uint32_t h = index ^ key;
  h = (h ^ (h >> 16)) * 0x7feb352dU;
  h = (h ^ (h >> 15)) * 0x846ca68bU;
  return h ^ (h >> 16);
}
inline std::uint32_t dropout_key(std::uint64_t seed, std::int64_t step) {
  return dropout_hash(static_cast<std::uint32_t>(seed ^ (seed >> 32)) + 0x9e3779b9U,
                      static_cast<std::uint32_t>(step));
}
inline std::uint32_t drop_threshold(float rate) {
  return static_cast<std::uint32_t>(static_cast<double>(rate) * 4294967296.0);
}

// The results in double precision. Every array has the size of its operand; arrays that the layer
// and direction do not write stay unchanged. For bias forward, `y` holds the input on entry.
struct Reference {
  double* y = nullptr;
  double* dx = nullptr;
  double* dbias = nullptr;
  double* loss = nullptr;
  // For error bounds: sum of |dy| for dbias; sum of the terms' absolute values for dx of local
  // response normalization.
  double* magnitude = nullptr;
};
void reference(const Problem& problem, const Operands& operands, const Reference& result);

}  // namespace stepladder::layers

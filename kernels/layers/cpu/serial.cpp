// The definitions: one element after the other, with the C library's functions. Sums are in memory
// order.
#include <algorithm>
#include <cmath>

#include "kernels/layers/layers.hpp"

namespace stepladder::layers {
namespace {

void bias_forward(const Problem& p, const Operands& o) {
  for (std::int64_t row = 0; row < p.batch * p.channels; ++row)
#pragma omp simd
    for (std::int64_t i = row * p.spatial; i < (row + 1) * p.spatial; ++i)
      o.y[i] += o.bias[row % p.channels];
}

void bias_backward(const Problem& p, const Operands& o) {
  for (std::int64_t c = 0; c < p.channels; ++c) o.dbias[c] = 0;
  for (std::int64_t row = 0; row < p.batch * p.channels; ++row)
    for (std::int64_t i = row * p.spatial; i < (row + 1) * p.spatial; ++i)
      o.dbias[row % p.channels] += o.dy[i];
}

void relu_forward(const Problem& p, const Operands& o) {
#pragma omp simd
  for (std::int64_t i = 0; i < p.count(); ++i) o.y[i] = std::max(o.x[i], 0.0F);
}

void relu_backward(const Problem& p, const Operands& o) {
#pragma omp simd
  for (std::int64_t i = 0; i < p.count(); ++i) o.dx[i] = o.y[i] > 0 ? o.dy[i] : 0;
}

void sigmoid_forward(const Problem& p, const Operands& o) {
#pragma omp simd
  for (std::int64_t i = 0; i < p.count(); ++i) o.y[i] = 1 / (1 + std::exp(-o.x[i]));
}

void sigmoid_backward(const Problem& p, const Operands& o) {
#pragma omp simd
  for (std::int64_t i = 0; i < p.count(); ++i) o.dx[i] = o.dy[i] * o.y[i] * (1 - o.y[i]);
}

void tanh_forward(const Problem& p, const Operands& o) {
#pragma omp simd
  for (std::int64_t i = 0; i < p.count(); ++i) o.y[i] = std::tanh(o.x[i]);
}

void tanh_backward(const Problem& p, const Operands& o) {
#pragma omp simd
  for (std::int64_t i = 0; i < p.count(); ++i) o.dx[i] = o.dy[i] * (1 - o.y[i] * o.y[i]);
}

// forward: x to y; backward: dy to dx
void dropout(const Problem& p, const float* from, float* to, std::int64_t step) {
  const std::uint32_t key = dropout_key(p.seed, step), threshold = drop_threshold(p.rate);
#pragma omp simd
  for (std::int64_t i = 0; i < p.count(); ++i) {
    const bool kept = dropout_hash(key, static_cast<std::uint32_t>(i)) >= threshold;
    to[i] = kept ? from[i] / (1 - p.rate) : 0;
  }
}

// The window of element i holds the elements first, first + spatial, …, last.
struct Window {
  std::int64_t first, last;
};
Window window_of(const Problem& p, std::int64_t i) {
  const std::int64_t c = i / p.spatial % p.channels;
  return {i - std::min(c, p.size / 2) * p.spatial,
          i + std::min(p.channels - 1 - c, p.size / 2) * p.spatial};
}

float scale_of(const Problem& p, const float* x, std::int64_t i) {
  const auto [first, last] = window_of(p, i);
  float sum = 0;
  for (std::int64_t j = first; j <= last; j += p.spatial) sum += x[j] * x[j];
  return p.k + p.alpha / static_cast<float>(p.size) * sum;
}

void normalization_forward(const Problem& p, const Operands& o) {
  for (std::int64_t i = 0; i < p.count(); ++i)
    o.y[i] = o.x[i] * std::pow(scale_of(p, o.x, i), -p.beta);
}

void normalization_backward(const Problem& p, const Operands& o) {
  const float factor = 2 * p.alpha * p.beta / static_cast<float>(p.size);
  for (std::int64_t i = 0; i < p.count(); ++i) {
    const auto [first, last] = window_of(p, i);
    float sum = 0;
    for (std::int64_t j = first; j <= last; j += p.spatial)
      sum += o.dy[j] * o.x[j] * std::pow(scale_of(p, o.x, j), -p.beta - 1);
    o.dx[i] = o.dy[i] * std::pow(scale_of(p, o.x, i), -p.beta) - factor * o.x[i] * sum;
  }
}

// Subtracts the maximum of the row, so that no exponential overflows.
void softmax(const Problem& p, const Operands& o) {
  for (std::int64_t n = 0; n < p.batch; ++n) {
    const float* x = o.x + n * p.channels;
    float *y = o.y + n * p.channels, *dx = o.dx + n * p.channels;
    float largest = x[0], sum = 0;
#pragma omp simd reduction(max : largest)
    for (std::int64_t c = 1; c < p.channels; ++c) largest = std::max(largest, x[c]);
#pragma omp simd reduction(+ : sum)
    for (std::int64_t c = 0; c < p.channels; ++c) sum += y[c] = std::exp(x[c] - largest);
#pragma omp simd
    for (std::int64_t c = 0; c < p.channels; ++c) {
      y[c] /= sum;
      dx[c] = (y[c] - (c == o.labels[n] ? 1.0F : 0.0F)) / static_cast<float>(p.batch);
    }
    o.loss[n] = std::log(sum) - (x[o.labels[n]] - largest);
  }
}

void layer(const Problem& p, const Operands& o) {
  const bool forward = p.direction == Direction::forward;
  switch (p.layer) {
    case Layer::bias:
      return forward ? bias_forward(p, o) : bias_backward(p, o);
    case Layer::relu:
      return forward ? relu_forward(p, o) : relu_backward(p, o);
    case Layer::sigmoid:
      return forward ? sigmoid_forward(p, o) : sigmoid_backward(p, o);
    case Layer::tanh:
      return forward ? tanh_forward(p, o) : tanh_backward(p, o);
    case Layer::dropout:
      return dropout(p, forward ? o.x : o.dy, forward ? o.y : o.dx, o.step);
    case Layer::local_response_normalization:
      return forward ? normalization_forward(p, o) : normalization_backward(p, o);
    case Layer::softmax_cross_entropy:
      return softmax(p, o);
  }
}

constexpr VariantInfo info{
    .name = "serial",
    .technique = Technique::serial,
    .adds = "the definitions: one element after the other",
};

const Registration registration{info, plan_of<layer>};

}  // namespace
}  // namespace stepladder::layers

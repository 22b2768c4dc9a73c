#include <algorithm>
#include <cmath>

#include "kernels/layers/layers.hpp"

namespace stepladder::layers {
namespace {

void bias(const Problem& p, const Operands& o, const Reference& result) {
  if (p.direction == Direction::backward) {
    std::fill_n(result.dbias, p.channels, 0.0);
    std::fill_n(result.magnitude, p.channels, 0.0);
  }
  for (std::int64_t row = 0; row < p.batch * p.channels; ++row) {
    const std::int64_t c = row % p.channels;
    for (std::int64_t i = row * p.spatial; i < (row + 1) * p.spatial; ++i) {
      if (p.direction == Direction::forward) {
        result.y[i] += o.bias[c];
      } else {
        result.dbias[c] += o.dy[i];
        result.magnitude[c] += std::abs(double{o.dy[i]});
      }
    }
  }
}

// relu, sigmoid, tanh and dropout: element by element.
void elementwise(const Problem& p, const Operands& o, const Reference& result) {
  const std::uint32_t key = dropout_key(p.seed, o.step), threshold = drop_threshold(p.rate);
  const auto forward = [&](double x, bool kept) {
    switch (p.layer) {
      case Layer::relu:
        return std::max(x, 0.0);
      case Layer::sigmoid:
        return 1 / (1 + std::exp(-x));
      case Layer::tanh:
        return std::tanh(x);
      default:
        return kept ? x / (1 - double{p.rate}) : 0.0;
    }
  };
  const auto backward = [&](double y, double dy, bool kept) {
    switch (p.layer) {
      case Layer::relu:
        return y > 0 ? dy : 0.0;
      case Layer::sigmoid:
        return dy * y * (1 - y);
      case Layer::tanh:
        return dy * (1 - y * y);
      default:
        return kept ? dy / (1 - double{p.rate}) : 0.0;
    }
  };
  for (std::int64_t i = 0; i < p.count(); ++i) {
    const bool kept = dropout_hash(key, static_cast<std::uint32_t>(i)) >= threshold;
    if (p.direction == Direction::forward)
      result.y[i] = forward(o.x[i], kept);
    else  // dropout's backward reads no y
      result.dx[i] = backward(p.layer == Layer::dropout ? 0.0 : double{o.y[i]}, o.dy[i], kept);
  }
}

void local_response_normalization(const Problem& p, const Operands& o, const Reference& result) {
  const double alpha = p.alpha, beta = p.beta, size = static_cast<double>(p.size);
  for (std::int64_t n = 0; n < p.batch; ++n)
    for (std::int64_t c = 0; c < p.channels; ++c)
      for (std::int64_t s = 0; s < p.spatial; ++s) {
        const auto at = [&](std::int64_t channel) {
          return (n * p.channels + channel) * p.spatial + s;
        };
        const std::int64_t first = std::max<std::int64_t>(0, c - p.size / 2);
        const std::int64_t last = std::min(p.channels - 1, c + p.size / 2), i = at(c);
        double sum = 0, sum_of_absolutes = 0;
        for (std::int64_t window = first; window <= last; ++window) {
          const std::int64_t j = at(window);
          const double x = o.x[j];
          const double term =
              p.direction == Direction::forward ? x * x : double{o.dy[j]} * o.y[j] / o.scale[j];
          sum += term;
          sum_of_absolutes += std::abs(term);
        }
        if (p.direction == Direction::forward) {
          result.scale[i] = p.k + alpha / size * sum;
          result.y[i] = o.x[i] * std::pow(result.scale[i], -beta);
        } else {
          const double direct = o.dy[i] * std::pow(double{o.scale[i]}, -beta);
          const double factor = 2 * alpha * beta / size * o.x[i];
          result.dx[i] = direct - factor * sum;
          result.magnitude[i] = std::abs(direct) + std::abs(factor) * sum_of_absolutes;
        }
      }
}

void softmax_cross_entropy(const Problem& p, const Operands& o, const Reference& result) {
  for (std::int64_t n = 0; n < p.batch; ++n) {
    const std::int64_t row = n * p.channels, label = o.labels[n];
    if (p.direction == Direction::backward) {
      for (std::int64_t c = 0; c < p.channels; ++c)
        result.dx[row + c] =
            (double{o.y[row + c]} - (c == label ? 1 : 0)) / static_cast<double>(p.batch);
      continue;
    }
    const double largest = *std::max_element(o.x + row, o.x + row + p.channels);
    double sum = 0;
    for (std::int64_t c = 0; c < p.channels; ++c)
      sum += result.y[row + c] = std::exp(o.x[row + c] - largest);
    for (std::int64_t c = 0; c < p.channels; ++c) result.y[row + c] /= sum;
    result.loss[n] = std::log(sum) - (o.x[row + label] - largest);
  }
}

}  // namespace

void reference(const Problem& p, const Operands& o, const Reference& result) {
  switch (p.layer) {
    case Layer::bias:
      return bias(p, o, result);
    case Layer::relu:
    case Layer::sigmoid:
    case Layer::tanh:
    case Layer::dropout:
      return elementwise(p, o, result);
    case Layer::local_response_normalization:
      return local_response_normalization(p, o, result);
    case Layer::softmax_cross_entropy:
      return softmax_cross_entropy(p, o, result);
  }
}

}  // namespace stepladder::layers

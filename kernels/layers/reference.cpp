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

// relu, sigmoid, tanh and dropout.
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
    else  // backward of dropout reads no y
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
        const auto sum_over_window = [&](std::int64_t channel, const auto& term) {
          double sum = 0;
          for (std::int64_t w = channel - p.size / 2; w <= channel + p.size / 2; ++w)
            if (w >= 0 && w < p.channels) sum += term(w);
          return sum;
        };
        const auto scale = [&](std::int64_t channel) {
          return p.k + alpha / size * sum_over_window(channel, [&](std::int64_t w) {
                         return double{o.x[at(w)]} * o.x[at(w)];
                       });
        };
        const auto term = [&](std::int64_t w) {  // dy · y / scale
          return double{o.dy[at(w)]} * o.x[at(w)] * std::pow(scale(w), -beta - 1);
        };
        const std::int64_t i = at(c);
        const double power = std::pow(scale(c), -beta);
        if (p.direction == Direction::forward) {
          result.y[i] = o.x[i] * power;
        } else {
          const double direct = o.dy[i] * power, factor = 2 * alpha * beta / size * o.x[i];
          result.dx[i] = direct - factor * sum_over_window(c, term);
          result.magnitude[i] =
              std::abs(direct) + std::abs(factor) * sum_over_window(c, [&](std::int64_t w) {
                                   return std::abs(term(w));
                                 });
        }
      }
}

void softmax_cross_entropy(const Problem& p, const Operands& o, const Reference& result) {
  for (std::int64_t n = 0; n < p.batch; ++n) {
    const std::int64_t row = n * p.channels, label = o.labels[n];
    const double largest = *std::max_element(o.x + row, o.x + row + p.channels);
    double sum = 0;
    for (std::int64_t c = 0; c < p.channels; ++c)
      sum += result.y[row + c] = std::exp(o.x[row + c] - largest);
    for (std::int64_t c = 0; c < p.channels; ++c) {
      result.y[row + c] /= sum;
      result.dx[row + c] =
          (result.y[row + c] - (c == label ? 1 : 0)) / static_cast<double>(p.batch);
    }
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

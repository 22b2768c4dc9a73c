#include "tests/harness/training/reference_network.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "kernels/layers/layers.hpp"

namespace stepladder {
namespace {

using network::Shape;

// y[n, o] = bias[o] + sum over i of x[n, i] w[i, o]
Doubles fully_connected(std::int64_t batch, std::int64_t inputs, std::int64_t outputs,
                        const Doubles& x, const double* w, const double* bias) {
  Doubles y;
  for (std::int64_t n = 0; n < batch; ++n) {
    Doubles row(bias, bias + outputs);
    for (std::int64_t i = 0; i < inputs; ++i)
      for (std::int64_t o = 0; o < outputs; ++o)
        row[static_cast<std::size_t>(o)] +=
            x[static_cast<std::size_t>(n * inputs + i)] * w[i * outputs + o];
    y.insert(y.end(), row.begin(), row.end());
  }
  return y;
}

// Calls f(row, column, position in the window) for the part of a window that is inside the image.
template <class Function>
void for_window(const Shape& in, std::int64_t top, std::int64_t left, std::int64_t window_h,
                std::int64_t window_w, const Function& f) {
  for (std::int64_t r = 0; r < window_h; ++r)
    for (std::int64_t s = 0; s < window_w; ++s)
      if (top + r >= 0 && top + r < in.height && left + s >= 0 && left + s < in.width)
        f(top + r, left + s, r * window_w + s);
}

Doubles convolve(const network::Convolution& layer, std::int64_t batch, const Shape& in,
                 const Shape& out, const Doubles& x, const double* w, const double* bias) {
  const std::int64_t group_in = in.channels / layer.groups, group_out = out.channels / layer.groups;
  const std::int64_t window = layer.kernel_h * layer.kernel_w;
  Doubles y;
  for (std::int64_t n = 0; n < batch; ++n)
    for (std::int64_t o = 0; o < out.channels; ++o)
      for (std::int64_t p = 0; p < out.height; ++p)
        for (std::int64_t q = 0; q < out.width; ++q) {
          double sum = bias[o];
          for (std::int64_t i = 0; i < group_in; ++i) {
            const std::int64_t channel = n * in.channels + o / group_out * group_in + i;
            const double* plane = x.data() + channel * in.spatial();
            const double* filter = w + (o * group_in + i) * window;
            for_window(in, p * layer.stride_h - layer.pad_h, q * layer.stride_w - layer.pad_w,
                       layer.kernel_h, layer.kernel_w,
                       [&](std::int64_t h, std::int64_t c, std::int64_t position) {
                         sum += plane[h * in.width + c] * filter[position];
                       });
          }
          y.push_back(sum);
        }
  return y;
}

// What f(its elements inside the image) makes of each window of a pool, [batch, channels, out].
template <class Pool, class Function>
Doubles of_windows(const Pool& pool, std::int64_t batch, const network::LayerDescription& layer,
                   const Doubles& x, const Function& f) {
  const Shape &in = layer.input, &out = layer.output;
  Doubles y;
  for (std::int64_t plane = 0; plane < batch * in.channels; ++plane)
    for (std::int64_t p = 0; p < out.height; ++p)
      for (std::int64_t q = 0; q < out.width; ++q) {
        Doubles window;
        for_window(in, p * pool.stride_h - pool.pad_h, q * pool.stride_w - pool.pad_w,
                   pool.window_h, pool.window_w, [&](std::int64_t h, std::int64_t c, std::int64_t) {
                     const std::int64_t at = plane * in.spatial() + h * in.width + c;
                     window.push_back(x[static_cast<std::size_t>(at)]);
                   });
        y.push_back(f(std::move(window)));
      }
  return y;
}

// The gap between the two largest, different elements of a window.
double gap_of(Doubles window) {
  std::sort(window.rbegin(), window.rend());
  const bool has_gap = window.size() > 1 && window[0] > window[1];
  return has_gap ? window[0] - window[1] : std::numeric_limits<double>::infinity();
}

Doubles normalize(const network::LocalResponseNormalization& layer, std::int64_t batch,
                  const Shape& in, const Doubles& x) {
  Doubles y(x.size());
  for (std::int64_t n = 0; n < batch; ++n)
    for (std::int64_t c = 0; c < in.channels; ++c)
      for (std::int64_t s = 0; s < in.spatial(); ++s) {
        const auto at = [&](std::int64_t channel) {
          return static_cast<std::size_t>((n * in.channels + channel) * in.spatial() + s);
        };
        double squares = 0;
        for (std::int64_t near = std::max<std::int64_t>(0, c - layer.size / 2);
             near <= std::min(in.channels - 1, c + layer.size / 2); ++near)
          squares += x[at(near)] * x[at(near)];
        y[at(c)] =
            x[at(c)] /
            std::pow(layer.k + layer.alpha / static_cast<double>(layer.size) * squares, layer.beta);
      }
  return y;
}

Doubles drop(const network::Dropout& layer, std::uint64_t seed, std::int64_t step,
             const Doubles& x) {
  const std::uint32_t key = layers::dropout_key(seed, step);
  const std::uint32_t threshold = layers::drop_threshold(static_cast<float>(layer.rate));
  Doubles y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i)
    if (layers::dropout_hash(key, static_cast<std::uint32_t>(i)) >= threshold)
      y[i] = x[i] / (1 - layer.rate);
  return y;
}

template <class Function>
Doubles each(const Doubles& x, const Function& f) {
  Doubles y(x.size());
  std::ranges::transform(x, y.begin(), f);
  return y;
}

}  // namespace

ReferenceNetwork::ReferenceNetwork(const TrainableNetwork& network, std::uint64_t seed)
    : description_(network.description()),
      seed_(seed),
      offsets_(description_.layers.size()),
      images_(network.images().begin(), network.images().end()),
      labels_(network.labels().begin(), network.labels().end()) {
  for (std::size_t i = 0; i < offsets_.size(); ++i)
    for (const ParameterRange& p : network.parameter_list()) {
      if (p.name == description_.layers[i].name + ".weights") offsets_[i].weights = p.offset;
      if (p.name == description_.layers[i].name + ".biases") offsets_[i].biases = p.offset;
    }
}

Doubles ReferenceNetwork::layer_output(std::size_t index, const Doubles& x,
                                       std::span<const double> parameters,
                                       std::int64_t step) const {
  const network::LayerDescription& layer = description_.layers[index];
  const std::int64_t batch = description_.batch;
  const double* weights = parameters.data() + offsets_[index].weights;
  const double* biases = parameters.data() + offsets_[index].biases;
  struct Visitor {
    const network::LayerDescription& layer;
    std::int64_t batch;
    const Doubles& x;
    const double *weights, *biases;
    std::uint64_t seed;
    std::int64_t step;

    Doubles operator()(const network::FullyConnected& fc) const {
      return fully_connected(batch, layer.input.features(), fc.outputs, x, weights, biases);
    }
    Doubles operator()(const network::Convolution& c) const {
      return convolve(c, batch, layer.input, layer.output, x, weights, biases);
    }
    Doubles operator()(const network::MaxPool& p) const {
      return of_windows(p, batch, layer, x,
                        [](const Doubles& window) { return *std::ranges::max_element(window); });
    }
    Doubles operator()(const network::AveragePool& p) const {
      return of_windows(p, batch, layer, x, [&](const Doubles& window) {
        const bool counts_all = p.count == average_pool::Count::include_padding;
        return std::accumulate(window.begin(), window.end(), 0.0) /
               (counts_all ? static_cast<double>(p.window_h * p.window_w)
                           : static_cast<double>(window.size()));
      });
    }
    Doubles operator()(const network::Relu&) const {
      return each(x, [](double v) { return std::max(v, 0.0); });
    }
    Doubles operator()(const network::Sigmoid&) const {
      return each(x, [](double v) { return 1 / (1 + std::exp(-v)); });
    }
    Doubles operator()(const network::Tanh&) const {
      return each(x, [](double v) { return std::tanh(v); });
    }
    Doubles operator()(const network::Dropout& d) const { return drop(d, seed, step, x); }
    Doubles operator()(const network::LocalResponseNormalization& n) const {
      return normalize(n, batch, layer.input, x);
    }
    Doubles operator()(const network::SoftmaxCrossEntropy&) const { return x; }  // see loss()
  };
  return std::visit(
      Visitor{layer, batch, x, weights, biases, dropout_seed(seed_, layer.name, 0), step},
      layer.layer);
}

double ReferenceNetwork::kink_margin(std::span<const double> parameters, std::int64_t step) const {
  double margin = 1;
  Doubles x = images_;
  for (std::size_t i = 0; i < description_.layers.size(); ++i) {
    const network::LayerDescription& layer = description_.layers[i];
    double nearest = std::numeric_limits<double>::infinity();
    if (std::holds_alternative<network::Relu>(layer.layer)) {
      for (const double v : x)
        if (v != 0) nearest = std::min(nearest, std::abs(v));
    } else if (const auto* pool = std::get_if<network::MaxPool>(&layer.layer)) {
      const Doubles gaps = of_windows(*pool, description_.batch, layer, x, gap_of);
      nearest = *std::ranges::min_element(gaps);
    }
    double largest = 0;
    for (const double v : x) largest = std::max(largest, std::abs(v));
    if (largest > 0) margin = std::min(margin, nearest / largest);
    x = layer_output(i, x, parameters, step);
  }
  return margin;
}

double ReferenceNetwork::loss(std::span<const double> parameters, std::int64_t step) const {
  Doubles x = images_;
  for (std::size_t i = 0; i < description_.layers.size(); ++i)
    x = layer_output(i, x, parameters, step);
  // −log softmax(x)[label]; the largest x is subtracted before the exponentials.
  double sum = 0;
  for (std::size_t n = 0; n < labels_.size(); ++n) {
    const auto* row = x.data() + n * static_cast<std::size_t>(description_.classes);
    const double largest = *std::max_element(row, row + description_.classes);
    double exponentials = 0;
    for (std::int64_t c = 0; c < description_.classes; ++c)
      exponentials += std::exp(row[c] - largest);
    sum += std::log(exponentials) + largest - row[labels_[n]];
  }
  return sum / static_cast<double>(labels_.size());
}

}  // namespace stepladder

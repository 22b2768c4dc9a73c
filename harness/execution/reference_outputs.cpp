#include "harness/execution/reference_outputs.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "kernels/average_pool/average_pool.hpp"
#include "kernels/convolution/convolution.hpp"
#include "kernels/layers/layers.hpp"
#include "kernels/matmul/matmul.hpp"
#include "kernels/max_pool/max_pool.hpp"

namespace stepladder {
namespace {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

Floats rounded(const Doubles& values) { return {values.begin(), values.end()}; }

// The result of one layer for `batch` images; x: its input.
struct LayerReference {
  const network::LayerDescription& layer;
  std::int64_t batch;
  Floats& x;
  float *weights, *biases;

  std::size_t outputs() const { return static_cast<std::size_t>(batch * layer.output.features()); }

  Doubles with_bias(Doubles y) const {
    const layers::Problem problem{.layer = layers::Layer::bias,
                                  .batch = batch,
                                  .channels = layer.output.channels,
                                  .spatial = layer.output.spatial()};
    layers::reference(problem, {.bias = biases}, {.y = y.data()});
    return y;
  }

  Doubles operator()(const network::FullyConnected&) const {
    Doubles y(outputs()), magnitude(outputs());
    matmul::reference({.m = batch, .n = layer.output.features(), .k = layer.input.features()},
                      {x.data(), weights, nullptr}, y.data(), magnitude.data());
    return with_bias(std::move(y));
  }
  Doubles operator()(const network::Convolution& convolution) const {
    Doubles y(outputs()), magnitude(outputs());
    convolution::reference(network::problem_of(convolution, layer.input, batch),
                           {x.data(), weights, nullptr}, y.data(), magnitude.data());
    return with_bias(std::move(y));
  }
  Doubles operator()(const network::MaxPool& pool) const {
    Doubles y(outputs());
    std::vector<std::uint8_t> argmax(outputs());
    max_pool::reference_forward(network::problem_of(pool, layer.input, batch), x.data(), nullptr,
                                y.data(), argmax.data());
    return y;
  }
  Doubles operator()(const network::AveragePool& pool) const {
    Doubles y(outputs()), magnitude(outputs());
    average_pool::reference_forward(network::problem_of(pool, layer.input, batch), x.data(),
                                    y.data(), magnitude.data());
    return y;
  }
  Doubles operator()(const network::Dropout&) const { return {x.begin(), x.end()}; }
  Doubles operator()(const auto& pointwise) const {
    const std::vector<std::uint8_t> labels(static_cast<std::size_t>(batch));
    Doubles y(outputs()), dx(outputs()), loss(labels.size());
    layers::reference(network::problem_of(pointwise, layer.input, batch),
                      {.x = x.data(), .labels = labels.data()},
                      {.y = y.data(), .dx = dx.data(), .loss = loss.data()});
    return y;
  }
};

// Of got[i] to expected[i], as a part of `largest`. NaN counts as infinite.
double largest_error(std::span<const float> got, const Doubles& expected, double largest) {
  double error = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double one = std::abs(double{got[i]} - expected[i]) / largest;
    error = std::max(error, std::isnan(one) ? std::numeric_limits<double>::infinity() : one);
  }
  return error;
}

}  // namespace

Outputs reference_outputs(TrainableNetwork& network, std::span<const float> images) {
  const network::NetworkDescription& description = network.description();
  const auto at = [&](const std::string& name) -> float* {
    for (const ParameterRange& range : network.parameter_list())
      if (range.name == name) return network.parts().parameters.host.data() + range.offset;
    return nullptr;
  };
  const auto image = static_cast<std::size_t>(description.input.features());
  const auto batch = static_cast<std::int64_t>(images.size() / image);
  Outputs found;
  Floats x(images.begin(), images.end());
  for (const network::LayerDescription& layer : description.layers) {
    const LayerReference reference{layer, batch, x, at(layer.name + ".weights"),
                                   at(layer.name + ".biases")};
    Doubles y = std::visit(reference, layer.layer);
    x = rounded(y);
    found.logits = std::exchange(found.probabilities, std::move(y));
  }
  if (description.layers.size() == 1) found.logits.assign(images.begin(), images.end());
  return found;
}

double output_bound(const TrainableNetwork& network) {
  return std::max(1e-4, network.operand_error());
}

double output_error(const TrainableNetwork& network, const Outputs& reference) {
  double largest = 0;
  for (const double logit : reference.logits) largest = std::max(largest, std::abs(logit));
  if (largest == 0) largest = 1;
  return std::max(largest_error(network.logits(), reference.logits, largest),
                  largest_error(network.probabilities(), reference.probabilities, 1)) /
         output_bound(network);
}

}  // namespace stepladder

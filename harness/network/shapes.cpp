// The output shape of each layer for its input shape.
#include <fmt/format.h>

#include <limits>
#include <string>

#include "harness/network/description.hpp"

namespace stepladder::network {
namespace {

constexpr double most_elements = std::numeric_limits<std::int32_t>::max();

double product(const Shape& shape) {
  return static_cast<double>(shape.channels) * static_cast<double>(shape.height) *
         static_cast<double>(shape.width);
}

void check_elements(const char* what, double elements) {
  if (elements > most_elements) {
    throw std::invalid_argument(
        fmt::format("{:.3g} {}: expected at most {:.0f}", elements, what, most_elements));
  }
}

Shape output_of(const FullyConnected& layer, const Shape& input) {
  check_elements("weights", static_cast<double>(layer.outputs) * product(input));
  return {layer.outputs, 1, 1};
}

Shape output_of(const Convolution& layer, const Shape& input) {
  const convolution::Problem problem = problem_of(layer, input, 1);
  convolution::validate(problem);
  check_elements("weights",
                 static_cast<double>(layer.filters) * static_cast<double>(problem.group_in()) *
                     static_cast<double>(layer.kernel_h) * static_cast<double>(layer.kernel_w));
  return {layer.filters, problem.out_h(), problem.out_w()};
}

template <class Pool>
requires requires(Pool pool) { pool.window_h; }
Shape output_of(const Pool& layer, const Shape& input) {
  const auto problem = problem_of(layer, input, 1);
  validate(problem);
  return {input.channels, problem.out_h(), problem.out_w()};
}

template <class ElementByElement>
Shape output_of(const ElementByElement&, const Shape& input) {
  return input;
}

}  // namespace

void infer_shapes(NetworkDescription& network) {
  if (network.layers.empty()) throw ShapeError(0, "a network needs at least one layer, found none");
  Shape shape = network.input;
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    LayerDescription& layer = network.layers[i];
    const bool last = i + 1 == network.layers.size();
    const auto fail = [&](const std::string& what) {
      throw ShapeError(i, fmt::format("layer {} ({}): {}", layer.name, layer.type(), what));
    };
    const bool is_loss = std::holds_alternative<SoftmaxCrossEntropy>(layer.layer);
    if (network.is_part ? is_loss && !last : last != is_loss) {
      fail(last ? "expected softmax_cross_entropy as the last layer"
                : "expected no layer after softmax_cross_entropy");
    }
    layer.input = shape;
    try {
      check_elements("activations of one example", product(shape));
      shape = std::visit([&](const auto& one) { return output_of(one, shape); }, layer.layer);
    } catch (const std::invalid_argument& error) {
      fail(fmt::format("on an input of {}x{}x{} (channels, height, width): {}",
                       layer.input.channels, layer.input.height, layer.input.width, error.what()));
    }
    layer.output = shape;
  }
  if (!network.is_part && shape.features() != network.classes) {
    throw ShapeError(network.layers.size() - 1,
                     fmt::format("layer {}: expected one feature for each of the {} classes, found "
                                 "{} features",
                                 network.layers.back().name, network.classes, shape.features()));
  }
}

}  // namespace stepladder::network

#include "harness/network/description.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace stepladder::network {
namespace {

template <class Problem, class Pool>
Problem pool_problem(const Pool& layer, const Shape& input, std::int64_t batch) {
  return {.batch = batch,
          .channels = input.channels,
          .height = input.height,
          .width = input.width,
          .window_h = layer.window_h,
          .window_w = layer.window_w,
          .stride_h = layer.stride_h,
          .stride_w = layer.stride_w,
          .pad_h = layer.pad_h,
          .pad_w = layer.pad_w};
}

layers::Problem pointwise(layers::Layer layer, const Shape& input, std::int64_t batch) {
  return {.layer = layer, .batch = batch, .channels = input.channels, .spatial = input.spatial()};
}

template <class... Types>
bool is_one_of(const Layer& layer) {
  return (std::holds_alternative<Types>(layer) || ...);
}

// Whether the first activation after `layer` is relu.
bool relu_follows(const NetworkDescription& network, std::size_t layer) {
  for (std::size_t i = layer + 1; i < network.layers.size(); ++i) {
    const Layer& next = network.layers[i].layer;
    if (is_one_of<Relu>(next)) return true;
    if (is_one_of<Sigmoid, Tanh, SoftmaxCrossEntropy, FullyConnected, Convolution>(next)) break;
  }
  return false;
}

// Of a checkpoint: its text must not change.
std::string text_of(const LayerDescription& layer) {
  const auto details = [&]() -> std::string {
    if (const auto* c = std::get_if<Convolution>(&layer.layer))
      return fmt::format("{}x{} stride {}x{} pad {}x{} groups {}", c->kernel_h, c->kernel_w,
                         c->stride_h, c->stride_w, c->pad_h, c->pad_w, c->groups);
    if (const auto* p = std::get_if<MaxPool>(&layer.layer))
      return fmt::format("{}x{} stride {}x{} pad {}x{}", p->window_h, p->window_w, p->stride_h,
                         p->stride_w, p->pad_h, p->pad_w);
    if (const auto* p = std::get_if<AveragePool>(&layer.layer))
      return fmt::format("{}x{} stride {}x{} pad {}x{} {}", p->window_h, p->window_w, p->stride_h,
                         p->stride_w, p->pad_h, p->pad_w, average_pool::name_of(p->count));
    if (const auto* d = std::get_if<Dropout>(&layer.layer)) return fmt::format("{:g}", d->rate);
    if (const auto* n = std::get_if<LocalResponseNormalization>(&layer.layer))
      return fmt::format("{} {:g} {:g} {:g}", n->size, n->alpha, n->beta, n->k);
    return "";
  };
  return fmt::format("{} {} {} {}x{}x{}", layer.name, layer.type(), details(),
                     layer.output.channels, layer.output.height, layer.output.width);
}

}  // namespace

const std::map<std::string, sgd_update::Optimizer>& optimizer_types() {
  using enum sgd_update::Optimizer;
  static const auto types = [] {
    std::map<std::string, sgd_update::Optimizer> all;
    for (const auto type : {sgd, momentum, adagrad, adadelta, rmsprop, adam})
      all.emplace(sgd_update::name_of(type), type);
    return all;
  }();
  return types;
}

OptimizerDescription default_optimizer(sgd_update::Optimizer type) {
  using sgd_update::Optimizer;
  OptimizerDescription optimizer{.type = type};
  if (type == Optimizer::adadelta) {
    optimizer.learning_rate = 1;
    optimizer.rho = 0.95;
    optimizer.epsilon = 1e-6;
  } else if (type == Optimizer::rmsprop) {
    optimizer.learning_rate = 0.001;
    optimizer.rho = 0.9;
  } else if (type == Optimizer::adam) {
    optimizer.learning_rate = 0.001;
  }
  return optimizer;
}

const char* LayerDescription::type() const {
  return std::visit([](const auto& one) { return one.type; }, layer);
}

std::int64_t LayerDescription::weights() const {
  if (const auto* connected = std::get_if<FullyConnected>(&layer))
    return connected->outputs * input.features();
  if (const auto* convolution = std::get_if<Convolution>(&layer))
    return problem_of(*convolution, input, 1).w_count();
  return 0;
}

std::int64_t LayerDescription::biases() const { return weights() > 0 ? output.channels : 0; }

NetworkDescription without_optional(NetworkDescription network) {
  std::erase_if(network.layers, [](const LayerDescription& layer) { return layer.optional; });
  infer_shapes(network);
  return network;
}

NetworkDescription without_dropout(NetworkDescription network) {
  std::erase_if(network.layers, is<Dropout>);
  infer_shapes(network);
  return network;
}

std::vector<std::string> identity_of(const NetworkDescription& network) {
  std::vector<std::string> lines = {
      fmt::format("network: {}", network.name),
      fmt::format("input: {}x{}x{}", network.input.channels, network.input.height,
                  network.input.width),
      fmt::format("weight decay: {:g} on {}", network.optimizer.weight_decay,
                  static_cast<int>(network.optimizer.weight_decay_on))};
  for (const LayerDescription& layer : network.layers) lines.push_back("layer: " + text_of(layer));
  return lines;
}

NetworkDescription pool_before_relu(NetworkDescription network) {
  for (std::size_t i = 1; i < network.layers.size(); ++i)
    if (is_one_of<Relu>(network.layers[i - 1].layer) && is_one_of<MaxPool>(network.layers[i].layer))
      std::swap(network.layers[i - 1], network.layers[i]);
  infer_shapes(network);
  return network;
}

NetworkDescription with_batch(NetworkDescription network, std::int64_t batch) {
  network.batch = batch;
  return network;
}

NetworkDescription part_of(const NetworkDescription& network, std::size_t first, std::size_t end) {
  NetworkDescription part = network;
  part.layers.assign(network.layers.begin() + static_cast<std::ptrdiff_t>(first),
                     network.layers.begin() + static_cast<std::ptrdiff_t>(end));
  part.input = network.layers.at(first).input;
  part.is_part = true;
  infer_shapes(part);
  return part;
}

std::int64_t parameter_count(const NetworkDescription& network) {
  std::int64_t count = 0;
  for (const LayerDescription& layer : network.layers) count += layer.weights() + layer.biases();
  return count;
}

double initial_deviation(const NetworkDescription& network, std::size_t layer) {
  if (network.normal_std) return *network.normal_std;
  const LayerDescription& described = network.layers.at(layer);
  // The number of inputs of one output, and of outputs that depend on one input.
  double fan_in = 0, fan_out = 0;
  if (const auto* connected = std::get_if<FullyConnected>(&described.layer)) {
    fan_in = static_cast<double>(described.input.features());
    fan_out = static_cast<double>(connected->outputs);
  } else if (const auto* convolution = std::get_if<Convolution>(&described.layer)) {
    const auto kernel = static_cast<double>(convolution->kernel_h * convolution->kernel_w);
    const auto problem = problem_of(*convolution, described.input, 1);
    fan_in = static_cast<double>(problem.group_in()) * kernel;
    fan_out = static_cast<double>(problem.group_out()) * kernel;
  } else {
    return 0;
  }
  return std::sqrt(2.0 / (relu_follows(network, layer) ? fan_in : fan_in + fan_out));
}

convolution::Problem problem_of(const Convolution& layer, const Shape& input, std::int64_t batch) {
  return {.direction = convolution::Direction::forward,
          .batch = batch,
          .in_channels = input.channels,
          .height = input.height,
          .width = input.width,
          .out_channels = layer.filters,
          .kernel_h = layer.kernel_h,
          .kernel_w = layer.kernel_w,
          .stride_h = layer.stride_h,
          .stride_w = layer.stride_w,
          .pad_h = layer.pad_h,
          .pad_w = layer.pad_w,
          .groups = layer.groups};
}

max_pool::Problem problem_of(const MaxPool& layer, const Shape& input, std::int64_t batch) {
  return pool_problem<max_pool::Problem>(layer, input, batch);
}

average_pool::Problem problem_of(const AveragePool& layer, const Shape& input, std::int64_t batch) {
  auto problem = pool_problem<average_pool::Problem>(layer, input, batch);
  problem.count = layer.count;
  return problem;
}

layers::Problem problem_of(const Relu&, const Shape& input, std::int64_t batch) {
  return pointwise(layers::Layer::relu, input, batch);
}

layers::Problem problem_of(const Sigmoid&, const Shape& input, std::int64_t batch) {
  return pointwise(layers::Layer::sigmoid, input, batch);
}

layers::Problem problem_of(const Tanh&, const Shape& input, std::int64_t batch) {
  return pointwise(layers::Layer::tanh, input, batch);
}

layers::Problem problem_of(const Dropout& layer, const Shape& input, std::int64_t batch) {
  layers::Problem problem = pointwise(layers::Layer::dropout, input, batch);
  problem.rate = static_cast<float>(layer.rate);
  return problem;
}

layers::Problem problem_of(const LocalResponseNormalization& layer, const Shape& input,
                           std::int64_t batch) {
  layers::Problem problem = pointwise(layers::Layer::local_response_normalization, input, batch);
  problem.size = layer.size;
  problem.alpha = static_cast<float>(layer.alpha);
  problem.beta = static_cast<float>(layer.beta);
  problem.k = static_cast<float>(layer.k);
  return problem;
}

layers::Problem problem_of(const SoftmaxCrossEntropy&, const Shape& input, std::int64_t batch) {
  return pointwise(layers::Layer::softmax_cross_entropy, {input.features(), 1, 1}, batch);
}

}  // namespace stepladder::network

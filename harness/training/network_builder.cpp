#include "harness/training/network_builder.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "harness/adapters/types.hpp"
#include "harness/problem/random.hpp"
#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/convolution/convolution.hpp"
#include "kernels/sgd_update/sgd_update.hpp"

namespace stepladder {
namespace {

using network::Shape;

template <class Kind>
bool is(const network::LayerDescription& layer) {
  return std::holds_alternative<Kind>(layer.layer);
}

// Works in place: an element of y depends on that of x alone, backward needs y but not x, and the layer
// before needs neither again.
bool works_in_place(const std::vector<network::LayerDescription>& layers, std::size_t index) {
  if (index == 0) return false;
  const auto &layer = layers[index], &before = layers[index - 1];
  return (is<network::Relu>(layer) || is<network::Sigmoid>(layer) || is<network::Tanh>(layer) ||
          is<network::Dropout>(layer)) &&
         (is<network::FullyConnected>(before) || is<network::Convolution>(before) ||
          is<network::MaxPool>(before));
}

bool decays(const network::LayerDescription& layer,
            const network::OptimizerDescription& optimizer) {
  using Which = network::OptimizerDescription::DecayedWeights;
  if (optimizer.weight_decay == 0) return false;
  switch (optimizer.weight_decay_on) {
    case Which::all:
      return true;
    case Which::fully_connected:
      return is<network::FullyConnected>(layer);
    case Which::convolution:
      return is<network::Convolution>(layer);
  }
  return false;
}

bool can_take_epilogue(const std::vector<Variant>& candidates) {
  return std::any_of(candidates.begin(), candidates.end(),
                     [](const Variant& variant) { return variant.info->epilogue; });
}

// With a problem that has an epilogue, of which not all rungs take every shape.
bool can_take(const std::vector<Variant>& candidates, const max_pool::Problem& problem,
              int threads) {
  return std::any_of(candidates.begin(), candidates.end(), [&](const Variant& variant) {
    try {
      return variant.why_unavailable.empty() &&
             plan_variant<max_pool::MaxPool>(variant.entry, problem, {.threads = threads});
    } catch (const Unsupported&) {
      return false;
    }
  });
}

template <class T>
std::vector<Access> device_side(const Mirrored<T>& array, bool writes) {
  return {{reinterpret_cast<const std::byte*>(array.here), array.host.size_bytes(), writes}};
}

// Box and Muller's transform.
float normal(Random& random, double deviation) {
  const double u = 1.0 - double{random.uniform(0.0F, 1.0F)}, v = random.uniform(0.0F, 1.0F);
  return static_cast<float>(deviation * std::sqrt(-2 * std::log(u)) *
                            std::cos(2 * std::numbers::pi * v));
}

}  // namespace

void NetworkBuilder::build() {
  lay_out_activations();
  lay_out_parameters();
  draw_weights();
  TrainableNetwork& net = net_;
  add_copy(
      "images", "host_to_device", [&net] { net.taken_->images.start_upload(); },
      [&net] { return device_side(net.taken_->images, true); });
  add_copy(
      "labels", "host_to_device", [&net] { net.taken_->labels.start_upload(); },
      [&net] { return device_side(net.taken_->labels, true); });
  net_.batch_copies_ = net_.operations_.size();
  for (std::size_t i = 0; i < layers_.size(); ++i)
    pool_epilogues_.push_back(choose_pool_epilogue(i));
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    backward_.emplace_back();
    add_layer(i);
  }
  add_copy(
      "loss", "device_to_host", [&net] { net.loss_.start_download(); },
      [&net] { return device_side(net.loss_, false); });
  for (auto layer = backward_.rbegin(); layer != backward_.rend(); ++layer)
    std::move(layer->begin(), layer->end(), std::back_inserter(net_.operations_));
  add_all_reduce();
  add_updates();
}

// On the CPU there is nothing to copy.
void NetworkBuilder::add_copy(const char* what, const char* direction, std::function<void()> run,
                              std::function<std::vector<Access>()> accesses) {
  if (net_.place() == Place::cpu) return;
  net_.operations_.push_back({.layer = what,
                              .phase = Phase::other,
                              .variant = direction,
                              .run = std::move(run),
                              .accesses = std::move(accesses)});
}

float* NetworkBuilder::new_array(std::int64_t count) {
  return net_.memory_.array<float>(static_cast<std::size_t>(count));
}

void NetworkBuilder::lay_out_activations() {
  const auto batch = static_cast<std::size_t>(net_.batch());
  const auto inputs = batch * static_cast<std::size_t>(net_.description_.input.features());
  net_.batches_.resize(net_.place() == Place::cuda ? 2 : 1);
  for (TrainableNetwork::Batch& one : net_.batches_)
    one = {net_.memory_.mirrored<float>(inputs), net_.memory_.mirrored<std::uint8_t>(batch), {}};
  net_.activations_ = {nullptr};
  // Of the images none is wanted, but softmax would give it in passing.
  net_.activation_gradients_ = {is<network::SoftmaxCrossEntropy>(layers_.front())
                                    ? new_array(static_cast<std::int64_t>(inputs))
                                    : nullptr};
  net_.take(net_.batches_.front());
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const bool in_place = works_in_place(layers_, i);
    const std::int64_t count = net_.batch() * layers_[i].output.features();
    const bool last = i + 1 == layers_.size();
    if (last) net_.probabilities_ = net_.memory_.mirrored<float>(static_cast<std::size_t>(count));
    net_.activations_.push_back(in_place ? net_.activations_.back()
                                : last   ? net_.probabilities_.here
                                         : new_array(count));
    net_.activation_gradients_.push_back(in_place ? net_.activation_gradients_.back()
                                                  : new_array(count));
    net_.argmax_.push_back(is<network::MaxPool>(layers_[i])
                               ? net_.memory_.array<std::uint8_t>(static_cast<std::size_t>(count))
                               : nullptr);
  }
  net_.loss_ = net_.memory_.mirrored<float>(batch);
}

// All parameters stand in one array, so that one update serves the whole network: first the weights
// that decay, then the others and the biases. What is left between them stays 0.
void NetworkBuilder::lay_out_parameters() {
  weights_at_.resize(layers_.size());
  biases_at_.resize(layers_.size());
  std::size_t end = 0;
  const auto place = [&](const network::LayerDescription& layer, const char* what,
                         std::int64_t count, std::size_t& at) {
    constexpr std::size_t vector = 4;  // floats: where the device's vectors and the TMA can begin
    at = end = (end + vector - 1) / vector * vector;
    if (count == 0) return;
    net_.parameter_list_.push_back({layer.name + "." + what, end, static_cast<std::size_t>(count)});
    end += static_cast<std::size_t>(count);
  };
  for (std::size_t i = 0; i < layers_.size(); ++i)
    if (decays(layers_[i], net_.description_.optimizer))
      place(layers_[i], "weights", layers_[i].weights(), weights_at_[i]);
  decayed_ = end;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    if (!decays(layers_[i], net_.description_.optimizer))
      place(layers_[i], "weights", layers_[i].weights(), weights_at_[i]);
    place(layers_[i], "biases", layers_[i].biases(), biases_at_[i]);
  }
  net_.parameters_ = net_.memory_.mirrored<float>(end);
  net_.gradients_ = net_.memory_.mirrored<float>(end);
  net_.state1_ = net_.memory_.array<float>(end);
  net_.state2_ = net_.memory_.array<float>(end);
}

void NetworkBuilder::draw_weights() {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const network::LayerDescription& layer = layers_[i];
    const double deviation = network::initial_deviation(net_.description_, i);
    Random random(net_.options_.seed, layer.name);
    std::generate_n(net_.parameters_.host.begin() + static_cast<std::ptrdiff_t>(weights_at_[i]),
                    layer.weights(), [&] { return normal(random, deviation); });
  }
  net_.upload_parameters();
}

NetworkBuilder::Parameters NetworkBuilder::parameters(std::size_t layer) const {
  float *parameters = net_.parameters_.here, *gradients = net_.gradients_.here;
  return {parameters + weights_at_[layer], parameters + biases_at_[layer],
          gradients + weights_at_[layer], gradients + biases_at_[layer]};
}

template <class Primitive, class Operands>
Operation NetworkBuilder::make(const std::string& layer, Phase phase, const PrimitiveType& type,
                               const typename Primitive::Problem& problem, Operands operands) {
  Chosen<Primitive> chosen = plans_.choose<Primitive>(problem, type, use_, net_.options_.threads);
  std::shared_ptr<PlanOf<Primitive>> plan = std::move(chosen.plan);
  const bool prepacked = chosen.variant.info->prepacked;  // the step pays for packing new weights
  return {.layer = layer,
          .phase = phase,
          .variant = chosen.variant.name,
          .run =
              [plan, operands, prepacked] {
                const typename Primitive::Operands now = operands();
                if (prepacked) plan->prepare(now);
                plan->run(now);
              },
          .accesses = [problem, operands] { return accesses<Primitive>(problem, operands()); }};
}

void NetworkBuilder::add_layer(std::size_t index) {
  const network::LayerDescription& layer = layers_[index];
  const std::int64_t batch = net_.batch();
  const Shape& in = layer.input;
  const layers::Problem flat{.batch = batch, .channels = in.channels, .spatial = in.spatial()};
  const auto pointwise = [&](layers::Layer kind) {
    layers::Problem problem = flat;
    problem.layer = kind;
    return problem;
  };
  if (is<network::FullyConnected>(layer)) {
    add_fully_connected(index);
  } else if (const auto* convolution = std::get_if<network::Convolution>(&layer.layer)) {
    add_convolution(index, *convolution);
  } else if (const auto* pool = std::get_if<network::MaxPool>(&layer.layer)) {
    add_max_pool(index, *pool);
  } else if (is<network::Relu>(layer)) {
    add_pointwise(index, pointwise(layers::Layer::relu));
  } else if (is<network::Sigmoid>(layer)) {
    add_pointwise(index, pointwise(layers::Layer::sigmoid));
  } else if (is<network::Tanh>(layer)) {
    add_pointwise(index, pointwise(layers::Layer::tanh));
  } else if (const auto* dropout = std::get_if<network::Dropout>(&layer.layer)) {
    layers::Problem problem = pointwise(layers::Layer::dropout);
    problem.rate = static_cast<float>(dropout->rate);
    problem.seed = net_.options_.seed + index;
    add_pointwise(index, problem);
  } else if (const auto* lrn = std::get_if<network::LocalResponseNormalization>(&layer.layer)) {
    layers::Problem problem = pointwise(layers::Layer::local_response_normalization);
    problem.size = lrn->size;
    problem.alpha = static_cast<float>(lrn->alpha);
    problem.beta = static_cast<float>(lrn->beta);
    problem.k = static_cast<float>(lrn->k);
    add_pointwise(index, problem);
  } else if (is<network::SoftmaxCrossEntropy>(layer)) {
    layers::Problem problem = pointwise(layers::Layer::softmax_cross_entropy);
    problem.channels = in.features();
    problem.spatial = 1;
    add_pointwise(index, problem);
  }
}

// On a device every launch costs some 2 us, so a fully connected layer's product adds the bias too, and
// applies the ReLU that follows, which works in place; and the product that gives its input's gradient
// takes that on through a ReLU before it, which works in place as well. On the CPU that wins nothing. It
// takes a rung with an epilogue among those to choose from, of which those without are then unavailable;
// where none has one, as with naive, bias and ReLU are operations there too.
bool NetworkBuilder::has_epilogues(std::size_t index) const {
  return net_.place() == Place::cuda && is<network::FullyConnected>(layers_[index]) &&
         can_take_epilogue(use_.candidates(matmul_type()));
}

matmul::Epilogue NetworkBuilder::epilogue(std::size_t index) const {
  if (!has_epilogues(index)) return matmul::Epilogue::none;
  return is<network::Relu>(layers_[index + 1]) ? matmul::Epilogue::bias_relu
                                               : matmul::Epilogue::bias;
}

matmul::Epilogue NetworkBuilder::gradient_epilogue(std::size_t index) const {
  const bool follows_relu =
      index > 1 && is<network::Relu>(layers_[index - 1]) && works_in_place(layers_, index - 1);
  const bool is_in_pool = follows_relu && pool_epilogues_[index - 2] != max_pool::Epilogue::none;
  return follows_relu && !is_in_pool && has_epilogues(index) ? matmul::Epilogue::relu_gradient
                                                             : matmul::Epilogue::none;
}

void NetworkBuilder::add_fully_connected(std::size_t index) {
  const network::LayerDescription& layer = layers_[index];
  const std::int64_t batch = net_.batch(), in = layer.input.features(),
                     out = layer.output.features();
  const Parameters p = parameters(index);
  float* const* x = &net_.activations_[index];  // of the first layer it changes with the batch
  float* y = net_.activations_[index + 1];
  float *dx = net_.activation_gradients_[index], *dy = net_.activation_gradients_[index + 1];
  using Operands = matmul::Operands;

  const matmul::Problem forward{batch, out, in, false, false, epilogue(index)};
  const float* bias = has_bias(forward.epilogue) ? p.biases : nullptr;
  Operation multiply =
      make<matmul::Matmul>(layer.name, Phase::forward, matmul_type(), forward, [=] {
        return Operands{*x, p.weights, y, bias};
      });
  net_.evaluation_.push_back(multiply.run);
  net_.operations_.push_back(std::move(multiply));
  if (dx != nullptr) {
    const matmul::Problem input_gradient{batch, in, out, false, true, gradient_epilogue(index)};
    const bool needs_x = input_gradient.epilogue == matmul::Epilogue::relu_gradient;
    backward_[index].push_back(make<matmul::Matmul>(
        layer.name + ".input_gradient", Phase::backward, matmul_type(), input_gradient, [=] {
          return Operands{dy, p.weights, dx, nullptr, needs_x ? *x : nullptr};
        }));
    backward_[index].back().beside_next = true;
  }
  const matmul::Problem weight_gradient{in, out, batch, true, false};
  backward_[index].push_back(make<matmul::Matmul>(layer.name + ".weight_gradient", Phase::backward,
                                                  matmul_type(), weight_gradient, [=] {
                                                    return Operands{*x, dy, p.dweights};
                                                  }));
  add_bias(index, index);
}

void NetworkBuilder::add_convolution(std::size_t index, const network::Convolution& layer) {
  const network::LayerDescription& description = layers_[index];
  const Parameters p = parameters(index);
  float* const* x = &net_.activations_[index];  // of the first layer it changes with the batch
  float* y = net_.activations_[index + 1];
  float *dx = net_.activation_gradients_[index], *dy = net_.activation_gradients_[index + 1];
  using Operands = convolution::Operands;
  convolution::Problem problem = network::problem_of(layer, description.input, net_.batch());

  Operation convolve = make<convolution::Convolution>(description.name, Phase::forward,
                                                      convolution_type(), problem, [=] {
                                                        return Operands{*x, p.weights, y};
                                                      });
  net_.evaluation_.push_back(convolve.run);
  net_.operations_.push_back(std::move(convolve));
  if (dx != nullptr) {
    problem.direction = convolution::Direction::backward_data;
    backward_[index].push_back(make<convolution::Convolution>(
        description.name + ".input_gradient", Phase::backward, convolution_type(), problem, [=] {
          return Operands{dx, p.weights, dy};
        }));
    backward_[index].back().beside_next = true;
  }
  problem.direction = convolution::Direction::backward_weights;
  backward_[index].push_back(make<convolution::Convolution>(
      description.name + ".weight_gradient", Phase::backward, convolution_type(), problem, [=] {
        return Operands{*x, p.dweights, dy};
      }));
  if (!is_pooled(index)) add_bias(index, index);
}

// On a device max_pool takes bias and ReLU along in both directions, and with them the bias's gradient:
// four operations less. As above it takes a rung that does so, for this window.
max_pool::Epilogue NetworkBuilder::choose_pool_epilogue(std::size_t index) const {
  const auto* pool = std::get_if<network::MaxPool>(&layers_[index].layer);
  if (net_.place() != Place::cuda || pool == nullptr || index == 0 ||
      !is<network::Convolution>(layers_[index - 1]) || !is<network::Relu>(layers_[index + 1]))
    return max_pool::Epilogue::none;
  max_pool::Problem problem = network::problem_of(*pool, layers_[index].input, net_.batch());
  problem.epilogue = max_pool::Epilogue::bias_relu;
  for (const auto direction : {max_pool::Direction::forward, max_pool::Direction::backward}) {
    problem.direction = direction;
    if (!can_take(use_.candidates(max_pool_type()), problem, net_.options_.threads))
      return max_pool::Epilogue::none;
  }
  return problem.epilogue;
}

// Rounding keeps the order of the sums x + bias: the largest of a window is the same before and after.
bool NetworkBuilder::is_pooled(std::size_t index) const {
  return is<network::MaxPool>(layers_[index + 1]);
}

void NetworkBuilder::add_bias(std::size_t index, std::size_t at) {
  const network::LayerDescription& layer = layers_[index];
  const Parameters p = parameters(index);
  float *y = net_.activations_[at + 1], *dy = net_.activation_gradients_[at + 1];
  layers::Problem problem{.layer = layers::Layer::bias,
                          .batch = net_.batch(),
                          .channels = layers_[at].output.channels,
                          .spatial = layers_[at].output.spatial()};
  if (epilogue(index) == matmul::Epilogue::none) {
    Operation forward =
        make<layers::Layers>(layer.name + ".bias", Phase::forward, layers_type(), problem,
                             [=] { return layers::Operands{.y = y, .bias = p.biases}; });
    net_.evaluation_.push_back(forward.run);
    net_.operations_.push_back(std::move(forward));
  }
  problem.direction = layers::Direction::backward;
  backward_[at].push_back(
      make<layers::Layers>(layer.name + ".bias", Phase::backward, layers_type(), problem,
                           [=] { return layers::Operands{.dy = dy, .dbias = p.dbiases}; }));
}

void NetworkBuilder::add_max_pool(std::size_t index, const network::MaxPool& layer) {
  const network::LayerDescription& description = layers_[index];
  float* const* x = &net_.activations_[index];  // of the first layer it changes with the batch
  float* y = net_.activations_[index + 1];
  float *dx = net_.activation_gradients_[index], *dy = net_.activation_gradients_[index + 1];
  std::uint8_t* argmax = net_.argmax_[index];
  max_pool::Problem problem = network::problem_of(layer, description.input, net_.batch());
  problem.epilogue = pool_epilogues_[index];
  const bool is_fused = problem.epilogue != max_pool::Epilogue::none;
  const Parameters p = is_fused ? parameters(index - 1) : Parameters{};  // of the convolution
  Operation forward =
      make<max_pool::MaxPool>(description.name, Phase::forward, max_pool_type(), problem, [=] {
        return max_pool::Operands{*x, y, argmax, p.biases};
      });
  net_.evaluation_.push_back(forward.run);
  net_.operations_.push_back(std::move(forward));
  if (index > 0 && is<network::Convolution>(layers_[index - 1]) && !is_fused)
    add_bias(index - 1, index);
  if (dx == nullptr) return;
  problem.direction = max_pool::Direction::backward;
  backward_[index].push_back(
      make<max_pool::MaxPool>(description.name, Phase::backward, max_pool_type(), problem, [=] {
        return max_pool::Operands{
            .x = dx, .y = dy, .argmax = argmax, .forward_y = y, .dbias = p.dbiases};
      }));
}

void NetworkBuilder::add_pointwise(std::size_t index, layers::Problem problem) {
  const bool is_in_pool = index > 0 && pool_epilogues_[index - 1] == max_pool::Epilogue::bias_relu;
  if (is_in_pool) return;
  TrainableNetwork& net = net_;
  const auto operands = [&net, index] {
    return layers::Operands{.x = net.activations_[index],
                            .y = net.activations_[index + 1],
                            .dy = net.activation_gradients_[index + 1],
                            .dx = net.activation_gradients_[index],
                            .labels = net.taken_->labels.here,
                            .loss = net.loss_.here,
                            .step = net.step_};
  };
  const bool is_in_product = index > 0 && epilogue(index - 1) == matmul::Epilogue::bias_relu;
  if (!is_in_product) add_pointwise_forward(index, problem, operands);
  if (net_.activation_gradients_[index] == nullptr) return;
  const bool is_in_next_product =
      index + 1 < layers_.size() && gradient_epilogue(index + 1) == matmul::Epilogue::relu_gradient;
  if (is_in_next_product || !layers::has(problem.layer, layers::Direction::backward)) return;
  problem.direction = layers::Direction::backward;
  backward_[index].push_back(
      make<layers::Layers>(layers_[index].name, Phase::backward, layers_type(), problem, operands));
  backward_[index].back().changes = problem.layer == layers::Layer::dropout;
}

void NetworkBuilder::add_pointwise_forward(std::size_t index, const layers::Problem& problem,
                                           const std::function<layers::Operands()>& operands) {
  TrainableNetwork& net = net_;
  Operation forward =
      make<layers::Layers>(layers_[index].name, Phase::forward, layers_type(), problem, operands);
  if (problem.layer != layers::Layer::dropout)
    net_.evaluation_.push_back(forward.run);
  else if (net_.activations_[index] != net_.activations_[index + 1])  // nothing is dropped: y = x
    net_.evaluation_.emplace_back([&net, index, count = problem.count()] {
      net.memory_.copy(net.activations_[index + 1], net.activations_[index],
                       static_cast<std::size_t>(count) * sizeof(float));
    });
  forward.changes = problem.layer == layers::Layer::dropout;
  net_.operations_.push_back(std::move(forward));
}

void NetworkBuilder::add_all_reduce() {
  const int ranks = mpi_session().ranks();
  if (ranks == 1) return;
  const all_reduce::Problem problem{all_reduce::Operation::mean,
                                    static_cast<std::int64_t>(net_.parameters().size()), ranks};
  float* gradients = net_.gradients_.here;
  net_.operations_.push_back(
      make<all_reduce::AllReduce>("gradients", Phase::all_reduce, all_reduce_type(), problem, [=] {
        return all_reduce::Operands{gradients, gradients};
      }));
}

void NetworkBuilder::add_updates() {
  const network::OptimizerDescription& optimizer = net_.description_.optimizer;
  TrainableNetwork& net = net_;
  const auto update = [&](const char* name, std::size_t from, std::size_t to, double weight_decay) {
    if (from == to) return;
    const sgd_update::Problem problem{.optimizer = optimizer.type,
                                      .count = static_cast<std::int64_t>(to - from),
                                      .weight_decay = static_cast<float>(weight_decay),
                                      .momentum = static_cast<float>(optimizer.momentum),
                                      .rho = static_cast<float>(optimizer.rho),
                                      .beta1 = static_cast<float>(optimizer.beta1),
                                      .beta2 = static_cast<float>(optimizer.beta2),
                                      .epsilon = static_cast<float>(optimizer.epsilon)};
    net_.operations_.push_back(
        make<sgd_update::SgdUpdate>(name, Phase::update, sgd_update_type(), problem, [&net, from] {
          return sgd_update::Operands{.weights = net.parameters_.here + from,
                                      .gradient = net.gradients_.here + from,
                                      .state1 = net.state1_ + from,
                                      .state2 = net.state2_ + from,
                                      .learning_rate = static_cast<float>(net.learning_rate_),
                                      .step = net.step_};
        }));
    net_.operations_.back().changes = optimizer.type == sgd_update::Optimizer::adam;
  };
  update("decayed weights", 0, decayed_, optimizer.weight_decay);
  update(decayed_ == 0 ? "parameters" : "other parameters", decayed_, net_.parameters().size(), 0);
}

}  // namespace stepladder

#include "harness/execution/builder.hpp"

#include <algorithm>
#include <span>

#include "harness/adapters/make_case.hpp"
#include "harness/adapters/primitives.hpp"
#include "harness/execution/tensors.hpp"
#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/average_pool/average_pool.hpp"
#include "kernels/convolution/convolution.hpp"
#include "kernels/layers/layers.hpp"
#include "kernels/matmul/matmul.hpp"
#include "kernels/max_pool/max_pool.hpp"
#include "kernels/sgd_update/sgd_update.hpp"

namespace stepladder {
namespace {

using network::is;

bool any_supports_epilogue(const std::vector<Variant>& candidates) {
  return std::any_of(candidates.begin(), candidates.end(),
                     [](const Variant& variant) { return variant.info->epilogue; });
}

// The share of a result that it may be wrong by, where errors and terms are random. Quantized: a
// step is up to 2/127 of the largest magnitude, its rounding error is uniform, and values are a
// quarter of the largest on average: sqrt(2) · 4 / (127 sqrt(3)) = 0.026.
double error_of_outputs(const VariantInfo& info) {
  return info.operand_error + 2 * info.quantization_error;  // 0.032
}

template <class T>
std::vector<Access> device_access(const Mirrored<T>& array, bool writes) {
  return {{reinterpret_cast<const std::byte*>(array.here), array.host.size_bytes(), writes}};
}

class NetworkBuilder {
 public:
  NetworkBuilder(const network::NetworkDescription& description, Place place, const UseSpec& use,
                 const NetworkOptions& options, PlanStore& plans)
      : description_(description),
        use_(use),
        options_(options),
        plans_(plans),
        layers_(network::pool_before_relu(description).layers),
        parts_(std::make_unique<NetworkParts>(place)),
        tensors_(allocate_tensors(description, layers_, options, *parts_)) {}
  std::unique_ptr<NetworkParts> build();

 private:
  struct LayerParameters {
    float *weights, *biases, *dweights, *dbiases;
  };
  LayerParameters parameters(std::size_t layer) const;
  // x points to its place: the images change with the batch.
  struct LayerTensors {
    float* const* x;
    float *y, *dx, *dy;
  };
  LayerTensors tensors(std::size_t layer) const;
  template <class Layer>
  auto problem_of(std::size_t index, const Layer& layer) const {
    return network::problem_of(layer, layers_[index].input, description_.batch);
  }
  Place place() const { return parts_->memory.place(); }

  // The epilogues of the products of a fully connected layer: forward, and for its input gradient.
  bool has_epilogues(std::size_t index) const;
  matmul::Epilogue epilogue(std::size_t index) const;
  matmul::Epilogue gradient_epilogue(std::size_t index) const;
  // The epilogue of max_pool: the bias of the convolution before it and the ReLU after it.
  max_pool::Epilogue choose_pool_epilogue(std::size_t index) const;
  // Whether the bias of a convolution is added after the max_pool that follows.
  bool is_pooled(std::size_t index) const;

  void add_copy(const char* what, const char* direction, std::function<void()> run,
                std::function<std::vector<Access>()> accesses);
  // The operations of a layer.
  void add(std::size_t index, const network::FullyConnected& layer);
  void add(std::size_t index, const network::Convolution& layer);
  void add(std::size_t index, const network::MaxPool& layer);
  void add(std::size_t index, const network::AveragePool& layer);
  void add(std::size_t index, const network::Dropout& layer);
  void add(std::size_t index, const auto& layer) { add_pointwise(index, problem_of(index, layer)); }
  void add_bias(std::size_t index,
                std::size_t at);  // of layer `index`, to the output of layer `at`
  void add_pointwise(std::size_t index, layers::Problem problem);
  void add_all_reduce();
  void add_updates();

  // The chosen variant's plan, bound to the operands that `operands()` returns at each run.
  template <class Primitive, class Operands>
  Operation make(const std::string& layer, Phase phase, const typename Primitive::Problem& problem,
                 Operands operands);
  // Adds it to a step and to the evaluation.
  template <class Primitive, class Operands>
  void add_forward(const std::string& layer, const typename Primitive::Problem& problem,
                   Operands operands);
  template <class Primitive, class Operands>
  Operation& add_backward(std::size_t index, const std::string& layer,
                          const typename Primitive::Problem& problem, Operands operands) {
    return backward_[index].emplace_back(
        make<Primitive>(layer, Phase::backward, problem, operands));
  }

  const network::NetworkDescription& description_;
  const UseSpec& use_;
  const NetworkOptions& options_;
  PlanStore& plans_;
  LayerList layers_;
  std::unique_ptr<NetworkParts> parts_;
  NetworkTensors tensors_;
  std::vector<max_pool::Epilogue> pool_epilogues_;  // [layer]; none for other layers than max_pool
  // [layer], each layer's operations in the order in which they run. build() reverses the layers.
  std::vector<std::vector<Operation>> backward_;
};

std::unique_ptr<NetworkParts> NetworkBuilder::build() {
  NetworkParts& parts = *parts_;
  add_copy(
      "images", "host_to_device", [&parts] { parts.current->images.start_upload(); },
      [&parts] { return device_access(parts.current->images, true); });
  add_copy(
      "labels", "host_to_device", [&parts] { parts.current->labels.start_upload(); },
      [&parts] { return device_access(parts.current->labels, true); });
  parts.batch_copies = parts.operations.size();
  for (std::size_t i = 0; i < layers_.size(); ++i)
    pool_epilogues_.push_back(choose_pool_epilogue(i));
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    backward_.emplace_back();
    std::visit([&](const auto& layer) { add(i, layer); }, layers_[i].layer);
  }
  add_copy(
      "loss", "device_to_host", [&parts] { parts.loss.start_download(); },
      [&parts] { return device_access(parts.loss, false); });
  for (auto layer = backward_.rbegin(); layer != backward_.rend(); ++layer)
    std::move(layer->begin(), layer->end(), std::back_inserter(parts.operations));
  if (options_.inference) return std::move(parts_);
  add_all_reduce();
  add_updates();
  return std::move(parts_);
}

// The CPU needs no copies.
void NetworkBuilder::add_copy(const char* what, const char* direction, std::function<void()> run,
                              std::function<std::vector<Access>()> accesses) {
  if (place() == Place::cpu) return;
  parts_->operations.push_back({.layer = what,
                                .phase = Phase::other,
                                .variant = direction,
                                .run = std::move(run),
                                .accesses = std::move(accesses)});
}

NetworkBuilder::LayerParameters NetworkBuilder::parameters(std::size_t layer) const {
  float *parameters = parts_->parameters.here, *gradients = parts_->gradients.here;
  const std::size_t weights = tensors_.weights_at[layer], biases = tensors_.biases_at[layer];
  if (options_.inference) return {parameters + weights, parameters + biases, nullptr, nullptr};
  return {parameters + weights, parameters + biases, gradients + weights, gradients + biases};
}

NetworkBuilder::LayerTensors NetworkBuilder::tensors(std::size_t layer) const {
  return {&parts_->activations[layer], parts_->activations[layer + 1],
          parts_->activation_gradients[layer], parts_->activation_gradients[layer + 1]};
}

template <class Primitive, class Operands>
Operation NetworkBuilder::make(const std::string& layer, Phase phase,
                               const typename Primitive::Problem& problem, Operands operands) {
  const int threads = phase == Phase::update && options_.update_threads > 0
                          ? options_.update_threads
                          : options_.threads;
  // In a training mode the ranks may have batches of different size, and therefore other problems,
  // in all phases but the update.
  const bool alone =
      options_.alone || (options_.exchange != Exchange::all_reduce && phase != Phase::update);
  Chosen<Primitive> chosen =
      plans_.choose<Primitive>(problem, primitive(Primitive::name), use_, threads, alone);
  double operand_error = 0;  // the largest of the rungs that may run
  // A step packs its new weights; inference packs them once.
  const auto bound = [&](const Variant& variant,
                         std::shared_ptr<PlanOf<Primitive>> plan) -> Alternative {
    operand_error = std::max(operand_error, error_of_outputs(*variant.info));
    const auto run = [plan, operands] { plan->run(operands()); };
    const auto prepare = [plan, operands] { plan->prepare(operands()); };
    if (!variant.info->prepacked) return {variant.name, run};
    if (options_.inference) return {variant.name, run, prepare};
    return {variant.name, [run, prepare] {
              prepare();
              run();
            }};
  };
  Alternative own = bound(chosen.variant, std::move(chosen.plan));
  Operation operation{
      .layer = layer,
      .phase = phase,
      .variant = own.variant,
      .run = own.run,
      .prepare = own.prepare,
      .accesses = [problem, operands] { return accesses<Primitive>(problem, operands()); }};
  if (options_.alternatives && !chosen.close.empty()) {
    operation.alternatives.push_back(std::move(own));
    for (const Variant& variant : chosen.close)
      operation.alternatives.push_back(
          bound(variant, plan_variant<Primitive>(variant.entry, problem,
                                                 {threads, mpi_session().communicator()})));
  }
  parts_->operand_error += operand_error;
  return operation;
}

template <class Primitive, class Operands>
void NetworkBuilder::add_forward(const std::string& layer,
                                 const typename Primitive::Problem& problem, Operands operands) {
  Operation operation = make<Primitive>(layer, Phase::forward, problem, operands);
  if (!options_.inference) parts_->evaluation.push_back(operation.run);
  parts_->operations.push_back(std::move(operation));
}

// A launch on a device takes about 2 us. There the product of a fully connected layer also adds the
// bias and applies the ReLU that follows in place, and the product for its input gradient also
// computes the gradient of a ReLU that precedes in place. This needs a rung with an epilogue among
// the candidates; the others are then unavailable. Without any, as with naive, bias and ReLU are
// separate operations, as on the CPU, where fusing gains nothing.
bool NetworkBuilder::has_epilogues(std::size_t index) const {
  return place() == Place::cuda && is<network::FullyConnected>(layers_[index]) &&
         any_supports_epilogue(use_.candidates(matmul_type()));
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

void NetworkBuilder::add(std::size_t index, const network::FullyConnected&) {
  const network::LayerDescription& layer = layers_[index];
  const std::int64_t batch = description_.batch, in = layer.input.features(),
                     out = layer.output.features();
  const LayerParameters p = parameters(index);
  const LayerTensors t = tensors(index);
  using matmul::Matmul, matmul::Operands;

  const matmul::Problem forward{batch, out, in, false, false, epilogue(index)};
  const float* bias = has_bias(forward.epilogue) ? p.biases : nullptr;
  add_forward<Matmul>(layer.name, forward, [=] { return Operands{*t.x, p.weights, t.y, bias}; });
  if (t.dx != nullptr) {
    const matmul::Problem backward_data{batch, in, out, false, true, gradient_epilogue(index)};
    const bool needs_x = backward_data.epilogue == matmul::Epilogue::relu_gradient;
    add_backward<Matmul>(index, layer.name + ".backward_data", backward_data, [=] {
      return Operands{t.dy, p.weights, t.dx, nullptr, needs_x ? *t.x : nullptr};
    }).concurrent_with_next = true;
  }
  if (!options_.inference)
    add_backward<Matmul>(index, layer.name + ".backward_weights", {in, out, batch, true, false},
                         [=] {
                           return Operands{*t.x, t.dy, p.dweights};
                         });
  add_bias(index, index);
}

void NetworkBuilder::add(std::size_t index, const network::Convolution& layer) {
  const std::string& name = layers_[index].name;
  const LayerParameters p = parameters(index);
  const LayerTensors t = tensors(index);
  using convolution::Convolution, convolution::Operands;
  convolution::Problem problem = problem_of(index, layer);

  add_forward<Convolution>(name, problem, [=] { return Operands{*t.x, p.weights, t.y}; });
  if (t.dx != nullptr) {
    problem.direction = convolution::Direction::backward_data;
    add_backward<Convolution>(index, name + ".backward_data", problem, [=] {
      return Operands{t.dx, p.weights, t.dy};
    }).concurrent_with_next = true;
  }
  if (!options_.inference) {
    problem.direction = convolution::Direction::backward_weights;
    add_backward<Convolution>(index, name + ".backward_weights", problem, [=] {
      return Operands{*t.x, p.dweights, t.dy};
    });
  }
  if (!is_pooled(index)) add_bias(index, index);
}

// On a device max_pool fuses bias and ReLU in both directions, with the gradient of the bias: four
// operations less. This needs a rung among the candidates that supports it for this window.
max_pool::Epilogue NetworkBuilder::choose_pool_epilogue(std::size_t index) const {
  const auto* pool = std::get_if<network::MaxPool>(&layers_[index].layer);
  if (place() != Place::cuda || pool == nullptr || index == 0 ||
      !is<network::Convolution>(layers_[index - 1]) || !is<network::Relu>(layers_[index + 1]))
    return max_pool::Epilogue::none;
  max_pool::Problem problem = problem_of(index, *pool);
  problem.epilogue = max_pool::Epilogue::bias_relu;
  for (const auto direction : {max_pool::Direction::forward, max_pool::Direction::backward}) {
    problem.direction = direction;
    if (!any_supports<max_pool::MaxPool>(use_.candidates(max_pool_type()), problem,
                                         {.threads = options_.threads}))
      return max_pool::Epilogue::none;
  }
  return problem.epilogue;
}

// Rounding is monotonic: the largest x of a window is also the largest x + bias.
bool NetworkBuilder::is_pooled(std::size_t index) const {
  return is<network::MaxPool>(layers_[index + 1]);
}

void NetworkBuilder::add_bias(std::size_t index, std::size_t at) {
  const network::LayerDescription& layer = layers_[index];
  const LayerParameters p = parameters(index);
  float *y = parts_->activations[at + 1], *dy = parts_->activation_gradients[at + 1];
  layers::Problem problem{.layer = layers::Layer::bias,
                          .batch = description_.batch,
                          .channels = layers_[at].output.channels,
                          .spatial = layers_[at].output.spatial()};
  if (epilogue(index) == matmul::Epilogue::none)
    add_forward<layers::Layers>(layer.name + ".bias", problem,
                                [=] { return layers::Operands{.y = y, .bias = p.biases}; });
  if (options_.inference) return;
  problem.direction = layers::Direction::backward;
  add_backward<layers::Layers>(at, layer.name + ".bias", problem,
                               [=] { return layers::Operands{.dy = dy, .dbias = p.dbiases}; });
}

void NetworkBuilder::add(std::size_t index, const network::MaxPool& layer) {
  const std::string& name = layers_[index].name;
  const LayerTensors t = tensors(index);
  std::uint8_t* argmax = tensors_.argmax[index];
  max_pool::Problem problem = problem_of(index, layer);
  problem.epilogue = pool_epilogues_[index];
  const bool is_fused = problem.epilogue != max_pool::Epilogue::none;
  // With the bias of the convolution before it.
  const LayerParameters p = is_fused ? parameters(index - 1) : LayerParameters{};
  add_forward<max_pool::MaxPool>(name, problem, [=] {
    return max_pool::Operands{*t.x, t.y, argmax, p.biases};
  });
  if (index > 0 && is<network::Convolution>(layers_[index - 1]) && !is_fused)
    add_bias(index - 1, index);
  if (t.dx == nullptr) return;
  problem.direction = max_pool::Direction::backward;
  add_backward<max_pool::MaxPool>(index, name, problem, [=] {
    return max_pool::Operands{
        .x = t.dx, .y = t.dy, .argmax = argmax, .forward_y = t.y, .dbias = p.dbiases};
  });
}

void NetworkBuilder::add(std::size_t index, const network::AveragePool& layer) {
  const std::string& name = layers_[index].name;
  const LayerTensors t = tensors(index);
  using average_pool::AveragePool, average_pool::Operands;
  average_pool::Problem problem = problem_of(index, layer);
  add_forward<AveragePool>(name, problem, [=] { return Operands{*t.x, t.y}; });
  if (t.dx == nullptr) return;
  problem.direction = average_pool::Direction::backward;
  add_backward<AveragePool>(index, name, problem, [=] { return Operands{t.dx, t.dy}; });
}

void NetworkBuilder::add(std::size_t index, const network::Dropout& layer) {
  layers::Problem problem = problem_of(index, layer);
  problem.seed = dropout_seed(options_.seed, layers_[index].name, options_.replica);
  add_pointwise(index, problem);
}

void NetworkBuilder::add_pointwise(std::size_t index, layers::Problem problem) {
  const bool is_in_pool = index > 0 && pool_epilogues_[index - 1] == max_pool::Epilogue::bias_relu;
  if (is_in_pool) return;
  NetworkParts& parts = *parts_;
  const LayerTensors t = tensors(index);
  const auto operands = [&parts, t] {
    return layers::Operands{.x = *t.x,
                            .y = t.y,
                            .dy = t.dy,
                            .dx = t.dx,
                            .labels = parts.current->labels.here,
                            .loss = parts.loss.here,
                            .step = parts.step};
  };
  const bool is_dropout = problem.layer == layers::Layer::dropout;
  const bool is_in_product = index > 0 && epilogue(index - 1) == matmul::Epilogue::bias_relu;
  if (!is_in_product) {
    Operation forward =
        make<layers::Layers>(layers_[index].name, Phase::forward, problem, operands);
    forward.depends_on_step = is_dropout;
    if (!is_dropout && !options_.inference)
      parts.evaluation.push_back(forward.run);
    else if (is_dropout && *t.x != t.y)  // evaluation drops nothing: y = x
      parts.evaluation.emplace_back([&parts, t, count = problem.count()] {
        parts.memory.copy(t.y, *t.x, static_cast<std::size_t>(count) * sizeof(float));
      });
    parts.operations.push_back(std::move(forward));
  }
  const bool is_in_next_product =
      index + 1 < layers_.size() && gradient_epilogue(index + 1) == matmul::Epilogue::relu_gradient;
  if (t.dx == nullptr || is_in_next_product ||
      !layers::has(problem.layer, layers::Direction::backward))
    return;
  problem.direction = layers::Direction::backward;
  add_backward<layers::Layers>(index, layers_[index].name, problem, operands).depends_on_step =
      is_dropout;
}

void NetworkBuilder::add_all_reduce() {
  const int ranks = mpi_session().ranks();
  if (ranks == 1 || options_.exchange != Exchange::all_reduce) return;
  const auto count = static_cast<std::int64_t>(parts_->gradients.host.size());
  const all_reduce::Problem problem{all_reduce::Operation::mean, count, ranks};
  float* gradients = parts_->gradients.here;
  const all_reduce::Window* window = parts_->window.get();
  parts_->operations.push_back(
      make<all_reduce::AllReduce>("gradients", Phase::all_reduce, problem, [=] {
        return all_reduce::Operands{gradients, gradients, window};
      }));
}

void NetworkBuilder::add_updates() {
  const network::OptimizerDescription& optimizer = description_.optimizer;
  const NetworkParts& parts = *parts_;
  const auto update = [&](const char* name, std::size_t from, std::size_t to, double weight_decay) {
    if (from == to) return;
    parts_->updates.emplace_back(from, to);
    const sgd_update::Problem problem{
        .optimizer = optimizer.type,
        .count = static_cast<std::int64_t>(to - from),
        .weight_decay = static_cast<float>(weight_decay),
        .momentum = static_cast<float>(optimizer.momentum),
        .rho = static_cast<float>(optimizer.rho),
        .beta1 = static_cast<float>(optimizer.beta1),
        .beta2 = static_cast<float>(optimizer.beta2),
        .epsilon = static_cast<float>(optimizer.epsilon),
        .ranks = options_.exchange == Exchange::update ? mpi_session().ranks() : 1};
    const auto operands = [&parts, from] {
      return sgd_update::Operands{.weights = parts.parameters.here + from,
                                  .gradient = parts.gradients.here + from,
                                  .state1 = parts.state1.here + from,
                                  .state2 = parts.state2.here + from,
                                  .learning_rate = static_cast<float>(parts.learning_rate),
                                  .step = parts.step};
    };
    parts_->operations.push_back(
        make<sgd_update::SgdUpdate>(name, Phase::update, problem, operands));
    parts_->operations.back().depends_on_step = optimizer.type == sgd_update::Optimizer::adam;
  };
  const std::size_t decayed = tensors_.decayed;
  update("decayed weights", 0, decayed, optimizer.weight_decay);
  update(decayed == 0 ? "parameters" : "other parameters", decayed, parts.parameters.host.size(),
         0);
}

}  // namespace

std::unique_ptr<NetworkParts> build_network(const network::NetworkDescription& description,
                                            Place place, const UseSpec& use,
                                            const NetworkOptions& options, PlanStore& plans) {
  return NetworkBuilder(description, place, use, options, plans).build();
}

}  // namespace stepladder

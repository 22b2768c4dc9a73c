// A network as described by a JSON file (bench/networks.json): layers with their shapes, optimizer,
// initial weights. load.hpp reads the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "kernels/average_pool/average_pool.hpp"
#include "kernels/convolution/convolution.hpp"
#include "kernels/layers/layers.hpp"
#include "kernels/max_pool/max_pool.hpp"
#include "kernels/sgd_update/sgd_update.hpp"

namespace stepladder::network {

// The shape of one example's activations.
struct Shape {
  std::int64_t channels = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;

  std::int64_t spatial() const { return height * width; }
  std::int64_t features() const { return channels * height * width; }
  bool operator==(const Shape&) const = default;
};

// The layers. `type` is the name in the JSON, `short_name` begins the names of unnamed layers.

// y = W x + b over all features of x; output shape outputs x 1 x 1.
struct FullyConnected {
  static constexpr const char* type = "fully_connected";
  static constexpr const char* short_name = "fc";
  std::int64_t outputs = 0;
};

// With a bias per filter.
struct Convolution {
  static constexpr const char* type = "convolution";
  static constexpr const char* short_name = "conv";
  std::int64_t filters = 0;
  std::int64_t kernel_h = 0, kernel_w = 0;
  std::int64_t stride_h = 1, stride_w = 1;
  std::int64_t pad_h = 0, pad_w = 0;
  std::int64_t groups = 1;
};

struct MaxPool {
  static constexpr const char* type = "max_pool";
  static constexpr const char* short_name = "pool";
  std::int64_t window_h = 0, window_w = 0;
  std::int64_t stride_h = 0, stride_w = 0;  // the window's size unless given
  std::int64_t pad_h = 0, pad_w = 0;
};

// Global average pooling has a window as large as its input.
struct AveragePool {
  static constexpr const char* type = "average_pool";
  static constexpr const char* short_name = "average";
  std::int64_t window_h = 0, window_w = 0;
  std::int64_t stride_h = 0, stride_w = 0;  // the window's size unless given
  std::int64_t pad_h = 0, pad_w = 0;
  average_pool::Count count = average_pool::Count::include_padding;
};

struct Relu {
  static constexpr const char* type = "relu";
  static constexpr const char* short_name = "relu";
};

struct Sigmoid {
  static constexpr const char* type = "sigmoid";
  static constexpr const char* short_name = "sigmoid";
};

struct Tanh {
  static constexpr const char* type = "tanh";
  static constexpr const char* short_name = "tanh";
};

struct Dropout {
  static constexpr const char* type = "dropout";
  static constexpr const char* short_name = "dropout";
  double rate = 0.5;  // share of activations set to zero, 0 <= rate < 1
};

// Across `size` channels, by the formula of kernels/layers/layers.hpp. The defaults are those of
// Krizhevsky, Sutskever and Hinton (2012).
struct LocalResponseNormalization {
  static constexpr const char* type = "local_response_normalization";
  static constexpr const char* short_name = "lrn";
  std::int64_t size = 5;  // odd
  double alpha = 1e-4;
  double beta = 0.75;
  double k = 2.0;
};

// The loss; last in every network, and nowhere else.
struct SoftmaxCrossEntropy {
  static constexpr const char* type = "softmax_cross_entropy";
  static constexpr const char* short_name = "softmax";
};

using Layer = std::variant<FullyConnected, Convolution, MaxPool, AveragePool, Relu, Sigmoid, Tanh,
                           Dropout, LocalResponseNormalization, SoftmaxCrossEntropy>;

struct LayerDescription {
  std::string name;       // unique in the network; "relu1", "relu2" and so on by default
  bool optional = false;  // without_optional() removes it
  Layer layer;
  Shape input, output;  // set by infer_shapes()

  const char* type() const;
  std::int64_t weights() const;  // 0 for a layer without any
  std::int64_t biases() const;
};

template <class Kind>
bool is(const LayerDescription& layer) {
  return std::holds_alternative<Kind>(layer.layer);
}

struct OptimizerDescription {
  enum class DecayedWeights { all, fully_connected, convolution };

  sgd_update::Optimizer type = sgd_update::Optimizer::sgd;
  double learning_rate = 0;  // default: adadelta 1, rmsprop and adam 0.001; the others have none
  double decay = 1;          // multiplies the learning rate every `decay_every_samples` samples
  std::int64_t decay_every_samples = 0;  // 0: never
  double weight_decay = 0;
  DecayedWeights weight_decay_on = DecayedWeights::all;
  double momentum = 0.9;  // momentum
  double rho = 0;        // adadelta, default 0.95 (Zeiler 2012); rmsprop, default 0.9 (Hinton 2012)
  double beta1 = 0.9;    // adam (Kingma and Ba 2015)
  double beta2 = 0.999;  // adam
  double epsilon = 1e-8;  // adagrad, rmsprop, adam; adadelta's default is 1e-6 (Zeiler 2012)
};

// By the names in network files, which are those of sgd_update.
const std::map<std::string, sgd_update::Optimizer>& optimizer_types();
// With the defaults of the type. Learning rate 0: the type has none.
OptimizerDescription default_optimizer(sgd_update::Optimizer type);

struct NetworkDescription {
  std::string name;
  std::string source;  // the publication that describes it
  Shape input;
  std::int64_t classes = 0;
  std::int64_t batch = 0;
  std::vector<LayerDescription> layers;
  OptimizerDescription optimizer;
  // Consecutive layers of a network; only the last part ends in softmax_cross_entropy.
  bool is_part = false;
  // Standard deviation of all initial weights; see initial_deviation() for the default.
  std::optional<double> normal_std;
};

// A layer that does not support the shape of its input; what() names the layer.
class ShapeError : public std::invalid_argument {
 public:
  ShapeError(std::size_t layer, const std::string& what)
      : std::invalid_argument(what), layer_(layer) {}
  std::size_t layer() const { return layer_; }  // index into NetworkDescription::layers

 private:
  std::size_t layer_;
};

// Sets input and output of every layer, from the network's input. Throws ShapeError if a layer does
// not support its input or has more than 2^31 - 1 weights or activations per example, if the last
// layer of a whole network is not softmax_cross_entropy over `classes` features, or if an earlier
// one is.
void infer_shapes(NetworkDescription& network);

// The network without its optional layers, with new shapes.
NetworkDescription without_optional(NetworkDescription network);

// The network without its dropout, as it infers.
NetworkDescription without_dropout(NetworkDescription network);

// What the layout of the parameters and their meaning depend on: a line for the name, the input,
// the weights that decay, and each layer, as "layer: fc1 fully_connected  512x1x1".
std::vector<std::string> identity_of(const NetworkDescription& network);

// The same function with less work: every max_pool that follows a relu runs before it, and relu
// computes only the maxima. relu(max(x)) = max(relu(x)), and both have the same gradient: that of
// the maximum if it is positive, else 0. Layers with weights keep their index.
NetworkDescription pool_before_relu(NetworkDescription network);

NetworkDescription with_batch(NetworkDescription network, std::int64_t batch);

// Layers [first, end) of a network, for its modes of training that split it: their input is that of
// layer `first`.
NetworkDescription part_of(const NetworkDescription& network, std::size_t first, std::size_t end);

// Weights and biases of all layers.
std::int64_t parameter_count(const NetworkDescription& network);

// Initial weights are normally distributed with mean 0. Their standard deviation is normal_std if
// the network has it; otherwise sqrt(2 / fan_in) if the next activation is relu (He et al. 2015),
// else sqrt(2 / (fan_in + fan_out)) (Glorot and Bengio 2010); 0 for a layer without weights.
// Initial biases are 0.
double initial_deviation(const NetworkDescription& network, std::size_t layer);

// The kernels' problems; the direction is forward.
convolution::Problem problem_of(const Convolution& layer, const Shape& input, std::int64_t batch);
max_pool::Problem problem_of(const MaxPool& layer, const Shape& input, std::int64_t batch);
average_pool::Problem problem_of(const AveragePool& layer, const Shape& input, std::int64_t batch);
layers::Problem problem_of(const Relu& layer, const Shape& input, std::int64_t batch);
layers::Problem problem_of(const Sigmoid& layer, const Shape& input, std::int64_t batch);
layers::Problem problem_of(const Tanh& layer, const Shape& input, std::int64_t batch);
layers::Problem problem_of(const Dropout& layer, const Shape& input,
                           std::int64_t batch);  // no seed
layers::Problem problem_of(const LocalResponseNormalization& layer, const Shape& input,
                           std::int64_t batch);
layers::Problem problem_of(const SoftmaxCrossEntropy& layer, const Shape& input,
                           std::int64_t batch);

}  // namespace stepladder::network

// Lays out a network's tensors and makes its plans, layer by layer.
#pragma once

#include "harness/training/network.hpp"
#include "kernels/layers/layers.hpp"
#include "kernels/matmul/matmul.hpp"
#include "kernels/max_pool/max_pool.hpp"

namespace stepladder {

class NetworkBuilder {
 public:
  NetworkBuilder(TrainableNetwork& network, const UseSpec& use, PlanStore& plans)
      : net_(network),
        use_(use),
        plans_(plans),
        layers_(network::pool_before_relu(network.description_).layers) {}
  void build();

 private:
  struct Parameters {
    float *weights, *biases, *dweights, *dbiases;
  };

  float* new_array(std::int64_t count);
  void add_copy(const char* what, const char* direction, std::function<void()> run,
                std::function<std::vector<Access>()> accesses);
  void lay_out_activations();
  void lay_out_parameters();
  void draw_weights();
  Parameters parameters(std::size_t layer) const;

  void add_layer(std::size_t index);
  void add_fully_connected(std::size_t index);
  void add_convolution(std::size_t index, const network::Convolution& layer);
  // What the products of layer `index` do besides, so that no operation of its own has to: forward, and
  // for the gradient of its input.
  bool has_epilogues(std::size_t index) const;
  matmul::Epilogue epilogue(std::size_t index) const;
  matmul::Epilogue gradient_epilogue(std::size_t index) const;
  // Likewise of max_pool: the bias of the convolution before it, and the ReLU behind it.
  max_pool::Epilogue choose_pool_epilogue(std::size_t index) const;
  bool is_pooled(std::size_t index) const;  // a convolution whose bias waits for max_pool
  void add_bias(std::size_t index,
                std::size_t at);  // of layer `index`, to the output of layer `at`
  void add_max_pool(std::size_t index, const network::MaxPool& layer);
  void add_pointwise(std::size_t index, layers::Problem problem);
  void add_pointwise_forward(std::size_t index, const layers::Problem& problem,
                             const std::function<layers::Operands()>& operands);
  void add_all_reduce();
  void add_updates();

  // The chosen variant's plan, bound to operands that `operands()` gives at each run.
  template <class Primitive, class Operands>
  Operation make(const std::string& layer, Phase phase, const PrimitiveType& type,
                 const typename Primitive::Problem& problem, Operands operands);

  TrainableNetwork& net_;
  const UseSpec& use_;
  PlanStore& plans_;
  std::vector<network::LayerDescription> layers_;   // in the order they run
  std::vector<max_pool::Epilogue> pool_epilogues_;  // [layer]; none of others than max_pool
  // Backward operations layer by layer, each layer's in the order they run; build() reverses the layers.
  std::vector<std::vector<Operation>> backward_;
  std::vector<std::size_t> weights_at_, biases_at_;  // [layer], offsets into the parameters
  std::size_t decayed_ = 0;  // parameters [0, decayed_) decay, the others do not
};

}  // namespace stepladder

#include "kernels/layers/layers.hpp"

#include <fmt/format.h>

namespace stepladder::layers {
namespace {

constexpr double float_bytes = 4.0;

}  // namespace

const char* name_of(Layer layer) {
  switch (layer) {
    case Layer::bias:
      return "bias";
    case Layer::relu:
      return "relu";
    case Layer::sigmoid:
      return "sigmoid";
    case Layer::tanh:
      return "tanh";
    case Layer::dropout:
      return "dropout";
    case Layer::local_response_normalization:
      return "lrn";
    case Layer::softmax_cross_entropy:
      return "softmax";
  }
  return "";
}

bool has(Layer layer, Direction direction) {
  return layer != Layer::softmax_cross_entropy || direction == Direction::forward;
}

void Layers::require(const Problem& p, const VariantInfo&) {
  if (!has(p.layer, p.direction))
    throw Unsupported("softmax computes its gradient in its forward pass");
}

std::string direction(const Problem& p) {
  return fmt::format("{}_{}", name_of(p.layer),
                     p.direction == Direction::forward ? "forward" : "backward");
}

std::string shape(const Problem& p) {
  return fmt::format("n{} c{} s{}", p.batch, p.channels, p.spatial);
}

double flops(const Problem& p) {
  const bool forward = p.direction == Direction::forward;
  const auto elements = static_cast<double>(p.count());
  const auto batch = static_cast<double>(p.batch), size = static_cast<double>(p.size);
  switch (p.layer) {
    case Layer::bias:
    case Layer::relu:
    case Layer::dropout:
      return elements;
    case Layer::sigmoid:
      return elements * 3;  // forward: exp, +, /; backward: dy y (1 − y)
    case Layer::tanh:
      return elements * (forward ? 1 : 3);  // forward: tanh; backward: dy (1 − y²)
    // forward: size squares, size − 1 sums, ·, +, pow, ·
    // backward: the same, dy y / scale, size − 1 sums, 3 products, −
    case Layer::local_response_normalization:
      return elements * (forward ? 2 * size + 3 : 3 * size + 8);
    case Layer::softmax_cross_entropy:  // max, −, exp, +, /, /; per row: log, −, −
      return elements * 6 + batch * 3;
  }
  return 0;
}

double bytes_read(const Problem& p) {
  const bool forward = p.direction == Direction::forward;
  const double array = float_bytes * static_cast<double>(p.count());
  switch (p.layer) {
    case Layer::bias:  // forward: y and bias; backward: dy
      return array + (forward ? float_bytes * static_cast<double>(p.channels) : 0);
    case Layer::relu:
    case Layer::sigmoid:
    case Layer::tanh:
      return forward ? array : 2 * array;  // x; y and dy
    case Layer::dropout:
      return array;  // x; dy
    case Layer::local_response_normalization:
      return forward ? array : 2 * array;  // x; x and dy
    case Layer::softmax_cross_entropy:
      return array + static_cast<double>(p.batch);  // x and labels
  }
  return 0;
}

double bytes_written(const Problem& p) {
  const bool forward = p.direction == Direction::forward;
  const double array = float_bytes * static_cast<double>(p.count());
  switch (p.layer) {
    case Layer::bias:
      return forward ? array : float_bytes * static_cast<double>(p.channels);
    case Layer::relu:
    case Layer::sigmoid:
    case Layer::tanh:
    case Layer::dropout:
    case Layer::local_response_normalization:
      return array;
    case Layer::softmax_cross_entropy:  // y, dx and loss
      return 2 * array + float_bytes * static_cast<double>(p.batch);
  }
  return 0;
}

}  // namespace stepladder::layers

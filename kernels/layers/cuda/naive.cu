// The definitions on the GPU: one thread per element of the result, or per sum (bias backward: a
// channel; softmax: a row). Accesses are coalesced, so layers without sums should come near the
// memory bandwidth. Layers with sums run few threads with long chains of dependent loads: they are
// bound by latency.
#include "kernels/common/cuda/plan.hpp"
#include "kernels/layers/cuda/element.hpp"

namespace stepladder::layers {
namespace {

__global__ void bias_forward(Problem p, Operands o) {
  const std::int64_t t = thread_index();
  if (t < p.count()) o.y[t] += o.bias[t / p.spatial % p.channels];
}

__global__ void bias_backward(Problem p, Operands o) {
  const std::int64_t c = thread_index();
  if (c >= p.channels) return;
  float sum = 0;
  for (std::int64_t n = 0; n < p.batch; ++n)
    for (std::int64_t s = 0; s < p.spatial; ++s) sum += o.dy[(n * p.channels + c) * p.spatial + s];
  o.dbias[c] = sum;
}

__global__ void relu_forward(Problem p, Operands o) {
  const std::int64_t t = thread_index();
  if (t < p.count()) o.y[t] = relu(o.x[t]);
}

__global__ void relu_backward(Problem p, Operands o) {
  const std::int64_t t = thread_index();
  if (t < p.count()) o.dx[t] = relu_gradient(o.y[t], o.dy[t]);
}

__global__ void sigmoid_forward(Problem p, Operands o) {
  const std::int64_t t = thread_index();
  if (t < p.count()) o.y[t] = sigmoid(o.x[t]);
}

__global__ void sigmoid_backward(Problem p, Operands o) {
  const std::int64_t t = thread_index();
  if (t < p.count()) o.dx[t] = sigmoid_gradient(o.y[t], o.dy[t]);
}

__global__ void tanh_forward(Problem p, Operands o) {
  const std::int64_t t = thread_index();
  if (t < p.count()) o.y[t] = std::tanh(o.x[t]);
}

__global__ void tanh_backward(Problem p, Operands o) {
  const std::int64_t t = thread_index();
  if (t < p.count()) o.dx[t] = tanh_gradient(o.y[t], o.dy[t]);
}

// forward: x to y; backward: dy to dx
__global__ void dropout(Problem p, Dropout drop, const float* from, float* to) {
  const std::int64_t t = thread_index();
  if (t < p.count()) to[t] = drop(t, from[t]);
}

// The window of element t in channel c holds the channels c − below to c + above.
struct Window {
  __device__ Window(const Problem& p, std::int64_t t) {
    const std::int64_t c = t / p.spatial % p.channels;
    below = min(c, p.size / 2);
    above = min(p.channels - 1 - c, p.size / 2);
  }
  std::int64_t below, above;
};

__device__ float scale_of(const Problem& p, const float* x, std::int64_t t) {
  const Window window(p, t);
  float sum = 0;
  for (std::int64_t d = -window.below; d <= window.above; ++d) {
    const float value = x[t + d * p.spatial];
    sum += value * value;
  }
  return p.k + forward_factor(p) * sum;
}

__global__ void normalization_forward(Problem p, Operands o) {
  const std::int64_t t = thread_index();
  if (t < p.count()) o.y[t] = o.x[t] * to_minus_beta(scale_of(p, o.x, t), p.beta);
}

__global__ void normalization_backward(Problem p, Operands o) {
  const std::int64_t t = thread_index();
  if (t >= p.count()) return;
  const Window window(p, t);
  float sum = 0;
  for (std::int64_t d = -window.below; d <= window.above; ++d) {
    const std::int64_t i = t + d * p.spatial;
    const float scale = scale_of(p, o.x, i);
    sum += o.dy[i] * o.x[i] * to_minus_beta(scale, p.beta) / scale;
  }
  o.dx[t] =
      o.dy[t] * to_minus_beta(scale_of(p, o.x, t), p.beta) - backward_factor(p) * o.x[t] * sum;
}

// Subtracts the maximum of the row, so that no exponential overflows.
__global__ void softmax(Problem p, Operands o) {
  const std::int64_t n = thread_index();
  if (n >= p.batch) return;
  const float* x = o.x + n * p.channels;
  float *y = o.y + n * p.channels, *dx = o.dx + n * p.channels;
  float largest = x[0], sum = 0;
  for (std::int64_t c = 1; c < p.channels; ++c) largest = max(largest, x[c]);
  for (std::int64_t c = 0; c < p.channels; ++c) sum += y[c] = std::exp(x[c] - largest);
  for (std::int64_t c = 0; c < p.channels; ++c) {
    y[c] /= sum;
    dx[c] = (y[c] - (c == o.labels[n] ? 1.0F : 0.0F)) / static_cast<float>(p.batch);
  }
  o.loss[n] = std::log(sum) - (x[o.labels[n]] - largest);
}

void layer(const Problem& p, const Operands& o) {
  const bool forward = p.direction == Direction::forward;
  const auto start = [&](void (*kernel)(Problem, Operands), std::int64_t threads) {
    launch(kernel, {blocks_for(threads), block_threads}, p, o);
  };
  switch (p.layer) {
    case Layer::bias:
      return forward ? start(bias_forward, p.count()) : start(bias_backward, p.channels);
    case Layer::relu:
      return start(forward ? relu_forward : relu_backward, p.count());
    case Layer::sigmoid:
      return start(forward ? sigmoid_forward : sigmoid_backward, p.count());
    case Layer::tanh:
      return start(forward ? tanh_forward : tanh_backward, p.count());
    case Layer::dropout:
      return launch(dropout, {blocks_for(p.count()), block_threads}, p, Dropout(p, o.step),
                    forward ? o.x : o.dy, forward ? o.y : o.dx);
    case Layer::local_response_normalization:
      return start(forward ? normalization_forward : normalization_backward, p.count());
    case Layer::softmax_cross_entropy:
      return start(softmax, p.batch);
  }
}

constexpr VariantInfo info{
    .name = "naive",
    .technique = Technique::cuda,
    .adds = "the definitions on the GPU: one thread per element or per sum",
    .place = Place::cuda,
};

const Registration registration{info, make_cuda_plan<Layers, layer>};

}  // namespace
}  // namespace stepladder::layers

// Elementwise layers: to[i] = function(i, from[i]…), one float4 per thread, and one thread per
// element of the tail.
#pragma once

#include <cstdint>

#include "kernels/common/cuda/fast_divisor.hpp"
#include "kernels/common/cuda/launch.hpp"
#include "kernels/layers/cuda/element.hpp"

namespace stepladder::layers {

inline constexpr std::int64_t lanes = 4;  // floats of a float4

// Functions of an element's index and its inputs, as Dropout is.
struct Bias {
  const float* bias;  // [channels]
  FastDivisor spatial, channels;
  __device__ float operator()(std::int64_t i, float y) const {
    const auto plane = spatial.divide(static_cast<std::uint32_t>(i)).quotient;
    return y + bias[channels.divide(plane).remainder];
  }
};
struct Relu {
  __device__ float operator()(std::int64_t, float x) const { return relu(x); }
};
struct ReluGradient {
  __device__ float operator()(std::int64_t, float y, float dy) const {
    return relu_gradient(y, dy);
  }
};
struct Sigmoid {
  __device__ float operator()(std::int64_t, float x) const { return sigmoid(x); }
};
struct SigmoidGradient {
  __device__ float operator()(std::int64_t, float y, float dy) const {
    return sigmoid_gradient(y, dy);
  }
};
struct Tanh {
  __device__ float operator()(std::int64_t, float x) const { return std::tanh(x); }
};
struct TanhGradient {
  __device__ float operator()(std::int64_t, float y, float dy) const {
    return tanh_gradient(y, dy);
  }
};

__device__ inline float4 load_vector(const float* at) {
  const float4 vector = *reinterpret_cast<const float4*>(at);
  return vector;
}

template <class Function, class... Vectors>
__device__ float4 map_vector(const Function& function, std::int64_t i, const Vectors&... from) {
  return make_float4(function(i, from.x...), function(i + 1, from.y...), function(i + 2, from.z...),
                     function(i + 3, from.w...));
}

// to, from…: [count]. The first 4 · vectors elements are read and written as float4.
template <class Function, class... Inputs>
__global__ void map_kernel(Function function, std::int64_t count, std::int64_t vectors, float* to,
                           Inputs... from) {
  const std::int64_t t = thread_index();
  if (t < vectors) {
    const std::int64_t i = t * lanes;
    *reinterpret_cast<float4*>(to + i) = map_vector(function, i, load_vector(from + i)...);
  } else if (const std::int64_t i = vectors * lanes + t - vectors; i < count) {
    to[i] = function(i, from[i]...);
  }
}

inline bool is_vector_aligned(const float* array) {
  return reinterpret_cast<std::uintptr_t>(array) % sizeof(float4) == 0;
}

// `to` may be one of `from`: each thread writes the elements that it has read.
template <class Function, class... Inputs>
void map(std::int64_t count, float* to, const Function& function, const Inputs*... from) {
  const bool aligned = is_vector_aligned(to) && (is_vector_aligned(from) && ...);
  const std::int64_t vectors = aligned ? count / lanes : 0;
  const std::int64_t threads = vectors + (count - vectors * lanes);
  launch(map_kernel<Function, const Inputs*...>, {blocks_for(threads), block_threads}, function,
         count, vectors, to, from...);
}

}  // namespace stepladder::layers

// The definition on the GPU: one thread per element of the result, in each direction. backward_data
// gathers instead of scattering, so no two threads write the same element. backward_weights has one
// thread per weight, a few hundred in a first layer, and each sums over the whole batch: most of
// the GPU is idle.
#include "kernels/common/cuda/plan.hpp"
#include "kernels/convolution/cuda/element.hpp"

namespace stepladder::convolution {
namespace {

__global__ void forward_kernel(Geometry g, Operands o, std::int64_t count) {
  const std::int64_t t = thread_index();
  if (t < count) o.y[t] = forward_element(g, o, t);
}

__global__ void backward_data_kernel(Geometry g, Operands o, std::int64_t count) {
  const std::int64_t t = thread_index();
  if (t < count) o.x[t] = backward_data_element(g, o, t);
}

__global__ void backward_weights_kernel(Geometry g, Operands o, std::int64_t count) {
  const std::int64_t t = thread_index();
  if (t < count) o.w[t] = backward_weights_element(g, o, t);
}

void convolve(const Problem& p, const Operands& o) {
  const auto for_each = [&](auto kernel, std::int64_t count) {
    launch(kernel, {blocks_for(count), block_threads}, Geometry(p), o, count);
  };
  switch (p.direction) {
    case Direction::forward:
      return for_each(forward_kernel, p.y_count());
    case Direction::backward_data:
      return for_each(backward_data_kernel, p.x_count());
    case Direction::backward_weights:
      return for_each(backward_weights_kernel, p.w_count());
  }
}

constexpr VariantInfo info{
    .name = "naive",
    .technique = Technique::cuda,
    .adds = "the definition on the GPU: one thread per element of the result",
    .nhwc = true,
    .place = Place::cuda,
};

const Registration registration{info, make_cuda_plan<Convolution, convolve>};

}  // namespace
}  // namespace stepladder::convolution

// The definition on the GPU: forward one thread per window, backward one thread per element of dx.
// A backward thread checks every window that covers its element and adds dy where the arg-max is
// that element: no atomics, each dx is written once, and the order of the sum is fixed.
#include "kernels/common/cuda/plan.hpp"
#include "kernels/max_pool/cuda/element.hpp"

namespace stepladder::max_pool {
namespace {

__global__ void forward_kernel(Geometry g, Operands o, std::int64_t count) {
  const std::int64_t t = thread_index();
  if (t >= count) return;
  const Maximum maximum = forward_element(g, o.x, t);
  o.y[t] = maximum.value;
  o.argmax[t] = maximum.position;
}

__global__ void backward_kernel(Geometry g, Operands o, std::int64_t count) {
  const std::int64_t t = thread_index();
  if (t < count) o.x[t] = backward_element(g, o.y, o.argmax, t);
}

void pool(const Problem& p, const Operands& o) {
  const bool forward = p.direction == Direction::forward;
  const std::int64_t count = forward ? p.y_count() : p.x_count();
  const auto kernel = forward ? forward_kernel : backward_kernel;
  launch(kernel, {blocks_for(count), block_threads}, Geometry(p), o, count);
}

constexpr VariantInfo info{
    .name = "naive",
    .technique = Technique::cuda,
    .adds = "the definition on the GPU: one thread per window, or per element of dx",
    .place = Place::cuda,
};

const Registration registration{info, make_cuda_plan<MaxPool, pool>};

}  // namespace
}  // namespace stepladder::max_pool

// The definition on the GPU: forward one thread per window, backward one thread per element of dx.
// The backward thread looks at every window that can reach its element and takes dy where the
// arg-max names it: no atomics, each dx written once, and the same sum in the same order every
// time.
#include "kernels/common/cuda/plan.hpp"
#include "kernels/max_pool/cuda/element.hpp"

namespace stepladder::max_pool {
namespace {

__global__ void forward_kernel(Geometry g, Operands o, std::int64_t count) {
  const std::int64_t t = thread_index();
  if (t >= count) return;
  const Largest largest = forward_element(g, o.x, t);
  o.y[t] = largest.value;
  o.argmax[t] = largest.place;
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

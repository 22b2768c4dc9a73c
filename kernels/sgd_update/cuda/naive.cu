// The definition on the GPU: one thread per weight, one float at a time. Neighbouring threads touch
// neighbouring floats, so already this rung should come near the memory's bandwidth once the array
// fills the GPU; small arrays cost the launch.
#include "kernels/common/cuda/plan.hpp"
#include "kernels/sgd_update/cuda/element.hpp"

namespace stepladder::sgd_update {
namespace {

__global__ void update_kernel(Problem p, Operands o, Corrections correction) {
  const std::int64_t t = thread_index();
  if (t < p.count) update_element(p, o, correction, t);
}

void update(const Problem& p, const Operands& o) {
  launch(update_kernel, {blocks_for(p.count), block_threads}, p, o, Corrections(p, o.step));
}

constexpr VariantInfo info{
    .name = "naive",
    .technique = Technique::cuda,
    .adds = "the definition on the GPU: one thread per weight",
    .place = Place::cuda,
};

const Registration registration{info, make_cuda_plan<SgdUpdate, update>};

}  // namespace
}  // namespace stepladder::sgd_update

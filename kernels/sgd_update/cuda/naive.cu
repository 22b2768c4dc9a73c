// The definition on the GPU: one thread per weight, one float per load. Accesses are coalesced, so
// this rung should already come near the memory bandwidth for arrays that fill the GPU. Small
// arrays cost a launch.
#include "kernels/common/cuda/plan.hpp"
#include "kernels/sgd_update/cuda/element.hpp"

namespace stepladder::sgd_update {
namespace {

__global__ void update_kernel(Problem p, Operands o, BiasCorrection correction) {
  const std::int64_t t = thread_index();
  if (t < p.count) update_element(p, o, correction, t);
}

void update(const Problem& p, const Operands& o) {
  launch(update_kernel, {blocks_for(p.count), block_threads}, p, o, BiasCorrection(p, o.step));
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

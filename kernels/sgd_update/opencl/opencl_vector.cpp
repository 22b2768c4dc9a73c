// A work-item updates 8 weights with float8: an eighth of the loads and of the work-items.
#include "kernels/sgd_update/opencl/opencl_vector.cl.hpp"
#include "kernels/sgd_update/opencl/plan.hpp"

namespace stepladder::sgd_update {
namespace {

std::unique_ptr<Plan> plan(const Problem& p, const Resources& resources) {
  return std::make_unique<OpenClPlan>(p, resources, opencl_vector_cl, 8, "float8");
}

constexpr VariantInfo info{
    .name = "opencl_vector",
    .technique = Technique::opencl,
    .builds_on = "opencl_naive",
    .adds = "vector loads: float8, 8 weights per work-item",
    .idea = Idea::vectors,
    .place = Place::opencl,
    .threaded = true,
};

const Registration registration{info, plan};

}  // namespace
}  // namespace stepladder::sgd_update

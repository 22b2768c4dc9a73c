// The definition in OpenCL C: one work-item per weight.
#include "kernels/sgd_update/opencl/opencl_naive.cl.hpp"
#include "kernels/sgd_update/opencl/plan.hpp"

namespace stepladder::sgd_update {
namespace {

std::unique_ptr<Plan> plan(const Problem& p, const Resources& resources) {
  return std::make_unique<OpenClPlan>(p, resources, opencl_naive_cl, 1, "float");
}

constexpr VariantInfo info{
    .name = "opencl_naive",
    .technique = Technique::opencl,
    .adds = "the definition in OpenCL: one work-item per weight",
    .place = Place::opencl,
    .threaded = true,
};

const Registration registration{info, plan};

}  // namespace
}  // namespace stepladder::sgd_update

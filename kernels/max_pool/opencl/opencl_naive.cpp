// The definition in OpenCL C: one work-item per window forward. Backward, one work-item per element
// of dx gathers, so that overlapping windows need no atomic addition.
#include "kernels/max_pool/opencl/opencl_naive.cl.hpp"
#include "kernels/max_pool/opencl/plan.hpp"

namespace stepladder::max_pool {
namespace {

std::unique_ptr<Plan> plan(const Problem& p, const Resources& resources) {
  return std::make_unique<OpenClPlan>(
      p, resources, opencl_naive_cl, p.direction == Direction::forward ? p.y_count() : p.x_count());
}

constexpr VariantInfo info{
    .name = "opencl_naive",
    .technique = Technique::opencl,
    .adds = "the definition in OpenCL: one work-item per window, or per element of dx",
    .place = Place::opencl,
    .threaded = true,
};

const Registration registration{info, plan};

}  // namespace
}  // namespace stepladder::max_pool

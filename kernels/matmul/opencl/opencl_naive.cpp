// The definition in OpenCL C: one work-item per element of C. The compiler of the device decides
// how work-items become vectors or warps; on a CPU, PoCL runs a work-group as loops over its
// work-items.
#include "kernels/matmul/opencl/opencl_naive.cl.hpp"
#include "kernels/matmul/opencl/plan.hpp"

namespace stepladder::matmul {
namespace {

std::unique_ptr<Plan> plan(const Problem& p, const Resources& resources) {
  const OpenClTile tile{.elements = {64, 4}, .items = {64, 4}};
  return std::make_unique<OpenClPlan>(p, resources, opencl_naive_cl, tile);
}

constexpr VariantInfo info{
    .name = "opencl_naive",
    .technique = Technique::opencl,
    .adds = "the definition in OpenCL: one work-item per element of C",
    .place = Place::opencl,
    .threaded = true,
};

const Registration registration{info, plan};

}  // namespace
}  // namespace stepladder::matmul

// A work-item computes 4 x 4 elements of C in registers: a vector of B and 4 elements of A, from
// local memory, serve 16 products, where opencl_local loads two elements for each. The sizes suit a
// GPU: 256 work-items, tiles of 64 x 64.
#include "kernels/matmul/opencl/opencl_register.cl.hpp"
#include "kernels/matmul/opencl/plan.hpp"

namespace stepladder::matmul {
namespace {

std::unique_ptr<Plan> plan(const Problem& p, const Resources& resources) {
  return std::make_unique<OpenClPlan>(p, resources, opencl_register_cl, tile_of(opencl::gpu_tile));
}

constexpr VariantInfo info{
    .name = "opencl_register",
    .technique = Technique::opencl,
    .builds_on = "opencl_local",
    .adds = "4 x 4 accumulators per work-item, tiles of 64 x 64",
    .idea = Idea::register_tile,
    .place = Place::opencl,
    .threaded = true,
};

const Registration registration{info, plan};

}  // namespace
}  // namespace stepladder::matmul

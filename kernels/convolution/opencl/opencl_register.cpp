// A work-item computes 4 output channels of 4 pixels in registers: a vector of patches and 4
// weights, from local memory, serve 16 products. The sizes suit a GPU: 256 work-items, 64 channels
// of 64 pixels.
#include "kernels/convolution/opencl/opencl_register.cl.hpp"
#include "kernels/convolution/opencl/plan.hpp"

namespace stepladder::convolution {
namespace {

std::unique_ptr<Plan> plan(const Problem& p, const Resources& resources) {
  require_forward(p);
  return std::make_unique<OpenClPlan>(p, resources, opencl_register_cl,
                                      launch_of(p, opencl::gpu_tile));
}

constexpr VariantInfo info{
    .name = "opencl_register",
    .technique = Technique::opencl,
    .builds_on = "opencl_local",
    .adds = "4 channels x 4 pixels of accumulators per work-item, tiles of 64 x 64; forward",
    .idea = Idea::register_tile,
    .place = Place::opencl,
    .threaded = true,
};

const Registration registration{info, plan};

}  // namespace
}  // namespace stepladder::convolution

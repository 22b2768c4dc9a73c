// A convolution as the product of the filters and the patches of x, 16 x 16 elements per
// work-group: each element of w and x in local memory serves 16 work-items, and the test for
// padding is made once for 16 output channels.
#include "kernels/convolution/opencl/opencl_local.cl.hpp"
#include "kernels/convolution/opencl/plan.hpp"

namespace stepladder::convolution {
namespace {

std::unique_ptr<Plan> plan(const Problem& p, const Resources& resources) {
  require_forward(p);
  return std::make_unique<OpenClPlan>(p, resources, opencl_local_cl,
                                      launch_over_matrix(p, {16, 16}, {16, 16}, "-DTILE=16"));
}

constexpr VariantInfo info{
    .name = "opencl_local",
    .technique = Technique::opencl,
    .builds_on = "opencl_naive",
    .adds = "16 x 16 tiles of filters and patches in local memory; forward",
    .idea = Idea::shared_memory,
    .place = Place::opencl,
    .threaded = true,
};

const Registration registration{info, plan};

}  // namespace
}  // namespace stepladder::convolution

// A work-item computes 8 neighbours of a row of y with float8: an eighth of the tests for padding
// and of the loads of w, and one load of x where the 8 elements are neighbours inside the image.
#include "kernels/common/integer_math.hpp"
#include "kernels/convolution/opencl/opencl_vector.cl.hpp"
#include "kernels/convolution/opencl/plan.hpp"

namespace stepladder::convolution {
namespace {

std::unique_ptr<Plan> plan(const Problem& p, const Resources& resources) {
  require_forward(p);
  const std::int64_t vectors = p.batch * p.out_channels * p.out_h() * ceil_div(p.out_w(), 8);
  return std::make_unique<OpenClPlan>(p, resources, opencl_vector_cl, launch_over_items(vectors));
}

constexpr VariantInfo info{
    .name = "opencl_vector",
    .technique = Technique::opencl,
    .builds_on = "opencl_naive",
    .adds = "vector loads: float8 along a row of y; forward",
    .idea = Idea::vectors,
    .place = Place::opencl,
    .threaded = true,
};

const Registration registration{info, plan};

}  // namespace
}  // namespace stepladder::convolution

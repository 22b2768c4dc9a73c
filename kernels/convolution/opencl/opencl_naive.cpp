// The definition in OpenCL C, in each direction: one work-item per element of the result.
// backward_weights has one work-item per weight, and each sums over the whole batch.
#include "kernels/common/integer_math.hpp"
#include "kernels/convolution/opencl/opencl_naive.cl.hpp"
#include "kernels/convolution/opencl/plan.hpp"

namespace stepladder::convolution {
namespace {

std::unique_ptr<Plan> plan(const Problem& p, const Resources& resources) {
  const std::int64_t elements = p.direction == Direction::forward         ? p.y_count()
                                : p.direction == Direction::backward_data ? p.x_count()
                                                                          : p.w_count();
  return std::make_unique<OpenClPlan>(p, resources, opencl_naive_cl, launch_over_items(elements));
}

constexpr VariantInfo info{
    .name = "opencl_naive",
    .technique = Technique::opencl,
    .adds = "the definition in OpenCL: one work-item per element of the result",
    .place = Place::opencl,
    .threaded = true,
};

const Registration registration{info, plan};

}  // namespace
}  // namespace stepladder::convolution

// A work-item computes 8 windows of a row with float8: one load of 8 or 16 neighbours where the
// stride is 1 or 2, and select() in place of branches.
#include "kernels/common/integer_math.hpp"
#include "kernels/max_pool/opencl/opencl_vector.cl.hpp"
#include "kernels/max_pool/opencl/plan.hpp"

namespace stepladder::max_pool {
namespace {

std::unique_ptr<Plan> plan(const Problem& p, const Resources& resources) {
  if (p.direction != Direction::forward) throw Unsupported("computes forward alone");
  const std::int64_t vectors = p.planes() * p.out_h() * ceil_div(p.out_w(), 8);
  return std::make_unique<OpenClPlan>(p, resources, opencl_vector_cl, vectors);
}

constexpr VariantInfo info{
    .name = "opencl_vector",
    .technique = Technique::opencl,
    .builds_on = "opencl_naive",
    .adds = "vector loads: float8 along a row of windows, without branches; forward",
    .idea = Idea::vectors,
    .place = Place::opencl,
    .threaded = true,
};

const Registration registration{info, plan};

}  // namespace
}  // namespace stepladder::max_pool

// A work-item updates 8 weights with float8: an eighth of the loads and of the work-items.
#include "kernels/sgd_update/opencl/opencl_vector.cl.hpp"
#include "kernels/sgd_update/opencl/plan.hpp"

namespace stepladder::sgd_update {
namespace {

class OpenClVector final : public OpenClPlan {
 public:
  OpenClVector(const Problem& p, const Resources& resources)
      : OpenClPlan(p, resources, opencl_vector_cl, 8, "float8") {}
};

constexpr VariantInfo info{
    .name = "opencl_vector",
    .technique = Technique::opencl,
    .builds_on = "opencl_naive",
    .adds = "vector loads: float8, 8 weights per work-item",
    .idea = Idea::vectors,
    .place = Place::opencl,
    .threaded = true,
};

const Registration registration{info, make_plan<SgdUpdate, OpenClVector>};

}  // namespace
}  // namespace stepladder::sgd_update

// A work-item loads and computes float8: an eighth of the loads and of the work-items, and vectors
// of a CPU even where its compiler does not vectorize across work-items. vload8 needs the alignment
// of a float alone.
#include "kernels/matmul/opencl/opencl_vector.cl.hpp"
#include "kernels/matmul/opencl/plan.hpp"

namespace stepladder::matmul {
namespace {

class OpenClVector final : public OpenClPlan {
 public:
  OpenClVector(const Problem& p, const Resources& resources)
      : OpenClPlan(p, resources, opencl_vector_cl, {.elements = {64, 8}, .items = {8, 8}}) {}
};

constexpr VariantInfo info{
    .name = "opencl_vector",
    .technique = Technique::opencl,
    .builds_on = "opencl_naive",
    .adds = "vector loads: float8 along a row of C, or along K where B is transposed",
    .idea = Idea::vectors,
    .place = Place::opencl,
    .threaded = true,
};

const Registration registration{info, make_plan<Matmul, OpenClVector>};

}  // namespace
}  // namespace stepladder::matmul

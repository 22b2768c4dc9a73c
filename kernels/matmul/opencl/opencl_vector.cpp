// A work-item loads and computes float8: an eighth of the loads and of the work-items, and vectors
// of a CPU even where its compiler does not vectorize across work-items. vload8 needs the alignment
// of a float alone.
#include "kernels/matmul/opencl/opencl_vector.cl.hpp"
#include "kernels/matmul/opencl/plan.hpp"

namespace stepladder::matmul {
namespace {

std::unique_ptr<Plan> plan(const Problem& p, const Resources& resources) {
  const OpenClTile tile{.elements = {64, 8}, .items = {8, 8}};
  return std::make_unique<OpenClPlan>(p, resources, opencl_vector_cl, tile);
}

constexpr VariantInfo info{
    .name = "opencl_vector",
    .technique = Technique::opencl,
    .builds_on = "opencl_naive",
    .adds = "vector loads: float8 along a row of C, or along K where B is transposed",
    .idea = Idea::vectors,
    .place = Place::opencl,
    .threaded = true,
};

const Registration registration{info, plan};

}  // namespace
}  // namespace stepladder::matmul

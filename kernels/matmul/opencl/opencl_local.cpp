// A work-group copies a tile of A and one of B into local memory, waits at a barrier, and reads
// each element 16 times from there. On a GPU that is its shared memory; on a CPU local memory is
// memory like any other, so that the tiles are copies, contiguous and in the first-level cache, and
// each barrier ends a loop over the work-items. The ends of tiles beyond a matrix are zeros.
#include "kernels/matmul/opencl/opencl_local.cl.hpp"
#include "kernels/matmul/opencl/plan.hpp"

namespace stepladder::matmul {
namespace {

std::unique_ptr<Plan> plan(const Problem& p, const Resources& resources) {
  const OpenClTile tile{.elements = {16, 16}, .items = {16, 16}, .options = "-DTILE=16"};
  return std::make_unique<OpenClPlan>(p, resources, opencl_local_cl, tile);
}

constexpr VariantInfo info{
    .name = "opencl_local",
    .technique = Technique::opencl,
    .builds_on = "opencl_naive",
    .adds = "16 x 16 tiles of both operands in local memory",
    .idea = Idea::shared_memory,
    .place = Place::opencl,
    .threaded = true,
};

const Registration registration{info, plan};

}  // namespace
}  // namespace stepladder::matmul

// A work-item computes a whole tile of C, for CPUs: there a work-item is a call of the kernel, a
// barrier splits it into loops over the work-items, and what lives across the barrier is in memory.
// Without local memory and barriers the accumulators stay in registers for all of K. op(A) and
// op(B) are read in place, a transposed B element by element.
#include "kernels/matmul/opencl/item_tile.cl.hpp"
#include "kernels/matmul/opencl/item_tile.hpp"
#include "kernels/matmul/opencl/opencl_tile.cl.hpp"

namespace stepladder::matmul {
namespace {

std::unique_ptr<Plan> plan(const Problem& p, const Resources& resources) {
  const ItemTile tile = item_tile_for(session_for(p, resources.threads));
  return std::make_unique<OpenClPlan>(p, resources,
                                      (std::string(item_tile_cl) + opencl_tile_cl).c_str(),
                                      OpenClTile{.elements = tile.elements(),
                                                 .items = {1, 1},
                                                 .options = tile.options(),
                                                 .rows_first = true},
                                      tile.name());
}

constexpr VariantInfo info{
    .name = "opencl_tile",
    .technique = Technique::opencl,
    .builds_on = "opencl_tuned",
    .adds = "a work-item for a whole tile of C, without local memory and barriers",
    .idea = Idea::register_tile,
    .place = Place::opencl,
    .threaded = true,
};

const Registration registration{info, plan};

}  // namespace
}  // namespace stepladder::matmul

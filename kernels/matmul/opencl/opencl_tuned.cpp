// opencl_register with sizes chosen on the device: the first plan of a process times each of a
// short list on a product of 192 x 192 x 192 and keeps the fastest. One source serves CPUs, which
// want few work-items with long vectors and many rows, and GPUs, which want many small ones.
#include <memory>
#include <vector>

#include "kernels/matmul/opencl/opencl_register.cl.hpp"
#include "kernels/matmul/opencl/plan.hpp"

namespace stepladder::matmul {
namespace {

const opencl::RegisterTile& fastest_tile(const Resources& resources) {
  constexpr std::int64_t side = 192;
  std::vector<float> a(side * side), b(side * side), c(side * side);
  return opencl::fastest_tile(
      "matmul", resources.threads, [&](const opencl::RegisterTile& sizes) -> std::function<void()> {
        auto plan = std::make_shared<OpenClPlan>(Problem{.m = side, .n = side, .k = side},
                                                 resources, opencl_register_cl, tile_of(sizes));
        return [&, plan] { plan->run({.a = a.data(), .b = b.data(), .c = c.data()}); };
      });
}

std::unique_ptr<Plan> plan(const Problem& p, const Resources& resources) {
  const opencl::RegisterTile& sizes = fastest_tile(resources);
  return std::make_unique<OpenClPlan>(p, resources, opencl_register_cl, tile_of(sizes),
                                      sizes.name());
}

constexpr VariantInfo info{
    .name = "opencl_tuned",
    .technique = Technique::opencl,
    .builds_on = "opencl_register",
    .adds = "tile sizes chosen on the device, by timing a short list",
    .idea = Idea::register_tile,
    .place = Place::opencl,
    .threaded = true,
};

const Registration registration{info, plan};

}  // namespace
}  // namespace stepladder::matmul

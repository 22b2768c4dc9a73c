// opencl_register with sizes chosen on the device: the first plan of a process times each of a
// short list on 4 images of 32 channels, 3 x 3 filters, and keeps the fastest.
#include <memory>
#include <vector>

#include "kernels/convolution/opencl/opencl_register.cl.hpp"
#include "kernels/convolution/opencl/plan.hpp"

namespace stepladder::convolution {
namespace {

const opencl::RegisterTile& fastest_tile(const Problem& problem, const Resources& resources) {
  require_forward(problem);
  const Problem p{.batch = 4,
                  .in_channels = 32,
                  .height = 16,
                  .width = 16,
                  .out_channels = 64,
                  .kernel_h = 3,
                  .kernel_w = 3,
                  .pad_h = 1,
                  .pad_w = 1};
  std::vector<float> x(static_cast<std::size_t>(p.x_count())),
      w(static_cast<std::size_t>(p.w_count())), y(static_cast<std::size_t>(p.y_count()));
  return opencl::fastest_tile(
      "convolution", resources.threads,
      [&](const opencl::RegisterTile& sizes) -> std::function<void()> {
        auto plan =
            std::make_shared<OpenClPlan>(p, resources, opencl_register_cl, launch_of(p, sizes));
        return [&, plan] { plan->run({.x = x.data(), .w = w.data(), .y = y.data()}); };
      });
}

std::unique_ptr<Plan> plan(const Problem& p, const Resources& resources) {
  const opencl::RegisterTile& sizes = fastest_tile(p, resources);
  return std::make_unique<OpenClPlan>(p, resources, opencl_register_cl, launch_of(p, sizes),
                                      sizes.name());
}

constexpr VariantInfo info{
    .name = "opencl_tuned",
    .technique = Technique::opencl,
    .builds_on = "opencl_register",
    .adds = "tile sizes chosen on the device, by timing a short list; forward",
    .idea = Idea::register_tile,
    .place = Place::opencl,
    .threaded = true,
};

const Registration registration{info, plan};

}  // namespace
}  // namespace stepladder::convolution

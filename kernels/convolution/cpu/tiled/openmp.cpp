// `packed` on a team of OpenMP threads (openmp_plan.cpp). In forward and backward_data the pixels
// of the batch are divided among the threads, so each writes its own results. backward_weights sums
// over the pixels: each thread has partial sums, which are added at the end. There are two
// barriers.
#include "kernels/common/cpu/simd.hpp"
#include "kernels/convolution/cpu/openmp_plan.hpp"
#include "kernels/convolution/cpu/tiled/tiled.hpp"

namespace stepladder::convolution {
namespace {

std::unique_ptr<Plan> plan(const Problem& problem, const Resources& resources) {
  return std::make_unique<OpenMpPlan>(make_tiled(problem, resources.threads), resources.threads);
}

constexpr VariantInfo info{
    .name = "openmp",
    .technique = Technique::openmp,
    .builds_on = "packed",
    .adds = "pixels of the batch divided among OpenMP threads",
    .idea = Idea::threads,
    .isa = build_isa,
    .threaded = true,
};

const Registration registration{info, plan};

}  // namespace
}  // namespace stepladder::convolution

// simd on a team of OpenMP threads. forward and backward_data share the pixels of the batch, so
// every thread has results of its own; backward_weights sums over the pixels, so the threads keep
// partial sums and add them at the end. Threads wait for each other twice. The team
// is in openmp_plan.cpp.
#include "kernels/common/cpu/simd.hpp"
#include "kernels/convolution/cpu/openmp_plan.hpp"
#include "kernels/convolution/cpu/tiled/tiled.hpp"

namespace stepladder::convolution {
namespace {

std::unique_ptr<Plan> plan(const Problem& problem, const Resources& resources) {
  return std::make_unique<OpenMpPlan>(make_steps(problem, resources.threads),
                                      resources.threads);
}

constexpr VariantInfo info{
    .name = "openmp",
    .technique = Technique::openmp,
    .builds_on = "simd",
    .adds = "the pixels of the batch shared by a team of threads",
    .isa = build_isa,
    .threaded = true,
};

const Registration registration{info, plan};

}  // namespace
}  // namespace stepladder::convolution

// The definition in OpenCL C, in each direction: one work-item per element of the result.
// backward_weights has one work-item per weight, and each sums over the whole batch.
#include "kernels/common/integer_math.hpp"
#include "kernels/convolution/opencl/opencl_naive.cl.hpp"
#include "kernels/convolution/opencl/plan.hpp"

namespace stepladder::convolution {
namespace {

constexpr opencl::Range items{.columns = 64, .rows = 1};

std::int64_t elements(const Problem& p) {
  switch (p.direction) {
    case Direction::forward:
      return p.y_count();
    case Direction::backward_data:
      return p.x_count();
    case Direction::backward_weights:
      break;
  }
  return p.w_count();
}

class OpenClNaive final : public OpenClPlan {
 public:
  OpenClNaive(const Problem& p, const Resources& resources)
      : OpenClPlan(p, resources, opencl_naive_cl,
                   {{ceil_div(static_cast<std::size_t>(elements(p)), items.columns), 1}, items}) {}
};

constexpr VariantInfo info{
    .name = "opencl_naive",
    .technique = Technique::opencl,
    .adds = "the definition in OpenCL: one work-item per element of the result",
    .place = Place::opencl,
    .threaded = true,
};

const Registration registration{info, make_plan<Convolution, OpenClNaive>};

}  // namespace
}  // namespace stepladder::convolution

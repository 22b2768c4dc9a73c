// All layers, limited by memory bandwidth. Elementwise layers load four elements at once; warps and
// blocks compute the sums that naive computes in one thread; the normalization reads its windows of
// channels from shared memory. Sums have a fixed order, so results are reproducible bit for bit.
//
// Expected gain over naive:
//   elementwise              1.1 to 1.5: a fourth of the memory instructions
//   bias backward, softmax   about the factor of threads per sum, until memory is the limit
//   normalization forward    2 to 4: x is read 1.25 times (size 5), not 5 times
//   normalization backward   5 to 10: x is read 1.5 times and dy 1.25 times; the scale and power of
//                            an element are computed 1.25 times, not once for each of its windows
#include <limits>

#include "kernels/common/cuda/plan.hpp"
#include "kernels/layers/cuda/vectorized/bias.hpp"
#include "kernels/layers/cuda/vectorized/elementwise.hpp"
#include "kernels/layers/cuda/vectorized/normalization.hpp"
#include "kernels/layers/cuda/vectorized/softmax.hpp"

namespace stepladder::layers {
namespace {

FastDivisor divisor(std::int64_t number) { return FastDivisor(static_cast<std::uint32_t>(number)); }

class VectorizedPlan final : public Plan {
 public:
  VectorizedPlan(const Problem& p, const Resources&) : p_(p) {
    require_cuda();
    if (p.count() > std::numeric_limits<std::int32_t>::max())
      throw Unsupported("takes at most 2147483647 elements; the problem has " +
                        std::to_string(p.count()));
    if (p.layer == Layer::local_response_normalization)
      require_shared_memory(normalization_shared_bytes(p));
  }

  void run(const Operands& o) override {
    const bool forward = p_.direction == Direction::forward;
    const std::int64_t count = p_.count();
    switch (p_.layer) {
      case Layer::bias:
        return forward
                   ? map(count, o.y, Bias{o.bias, divisor(p_.spatial), divisor(p_.channels)}, o.y)
                   : bias_backward(p_, o);
      case Layer::relu:
        return forward ? map(count, o.y, Relu{}, o.x) : map(count, o.dx, ReluGradient{}, o.y, o.dy);
      case Layer::sigmoid:
        return forward ? map(count, o.y, Sigmoid{}, o.x)
                       : map(count, o.dx, SigmoidGradient{}, o.y, o.dy);
      case Layer::tanh:
        return forward ? map(count, o.y, Tanh{}, o.x) : map(count, o.dx, TanhGradient{}, o.y, o.dy);
      case Layer::dropout:
        return map(count, forward ? o.y : o.dx, Dropout(p_, o.step), forward ? o.x : o.dy);
      case Layer::local_response_normalization:
        return normalization(p_, o);
      case Layer::softmax_cross_entropy:
        return softmax(p_, o);
    }
  }

 private:
  Problem p_;
};

constexpr VariantInfo info{
    .name = "vectorized",
    .technique = Technique::cuda,
    .builds_on = "naive",
    .adds = "four elements per load, sums by warps and blocks, windows from shared memory",
    .idea = Idea::vectors,
    .place = Place::cuda,
};

const Registration registration{info, make_plan<Layers, VectorizedPlan>};

}  // namespace
}  // namespace stepladder::layers

// Every layer at the rate at which memory gives its operands: four elements per load where elements
// need no others, sums by warps and blocks where naive sums in one thread, and windows of channels
// from shared memory. Sums have a fixed order, so that a result repeats bit for bit.
//
// Expected over naive: 1.1 to 1.5 where elements stand alone, as a fourth of the memory instructions
// do; about as many times as a sum has threads more, until memory binds, for bias backward and softmax;
// 2 to 4 for the normalization forward, which reads x 1.25 times (size 5), not five times; 5 to 10
// backward, which reads x 1.5 and dy 1.25 times, and computes an element's scale and power 1.25
// times, not again for each window that it is in.
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
      throw Unsupported("takes 2147483647 elements at most; these are " +
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
    .place = Place::cuda,
};

const Registration registration{info, make_plan<Layers, VectorizedPlan>};

}  // namespace
}  // namespace stepladder::layers

// The convolution as a matrix product whose one factor is gathered while it runs. shared_memory loads
// three values for eight products and meets at a barrier for every channel. Here the sums over (channel,
// row, column) are one long sum: each thread keeps 8 x 8 sums, so that 16 values from shared memory
// serve 64 products, and a step ends after 8 terms whatever the filter's size. Unfolded matrices, as
// im2col writes them, would cost 25 times the memory of x for 5 x 5 filters; a table of the terms, made
// by the plan, says where each element is instead.
//
//   forward            y  [out channels, pixels]  =  w [out channels, terms] · x [terms, pixels]
//   backward_data      dx [in channels, pixels]   =  w, turned round         · dy [terms, pixels],
//                      once for each remainder that a pixel's row and column leave when divided by
//                      the stride
//   backward_weights   dw [out channels, terms]   =  dy [out channels, pixels] · x [pixels, terms]
//
// Expected: 50 to 70 % of the FMA peak forward and backward_data where the pixels make enough blocks,
// 1.5 to 2 times shared_memory; gathering costs one instruction for every three to six products.
// backward_weights has few blocks for all that it sums: the next rung.
// Source: Chetlur et al., "cuDNN: Efficient Primitives for Deep Learning", 2014, section 3.
#include <vector>

#include "kernels/convolution/implicit_gemm_correlation.hpp"
#include "kernels/convolution/implicit_gemm_gradient.hpp"

namespace stepladder::convolution {
namespace {

class CorrelationPlan final : public Plan {
 public:
  explicit CorrelationPlan(const Problem& p) : forward_(p.direction == Direction::forward) {
    for (const Correlation& c : correlations(p)) products_.emplace_back(c);
  }
  void run(const Operands& o) override {
    for (const CorrelationProduct& product : products_)
      product.run(forward_ ? o.x : o.y, o.w, forward_ ? o.y : o.x);
  }

 private:
  bool forward_;
  std::vector<CorrelationProduct> products_;
};

class GradientPlan final : public Plan {
 public:
  explicit GradientPlan(const Problem& p) : gradient_(p) {}
  void run(const Operands& o) override { gradient_.run(o, o.w); }

 private:
  WeightGradient gradient_;
};

std::unique_ptr<Plan> make(const Problem& p, const Resources&) {
  require_cuda();
  require_int_indices(p);
  if (p.direction == Direction::backward_weights) return std::make_unique<GradientPlan>(p);
  return std::make_unique<CorrelationPlan>(p);
}

constexpr VariantInfo info{
    .name = "implicit_gemm",
    .technique = Technique::cuda,
    .builds_on = "shared_memory",
    .adds =
        "one matrix product with 8 x 8 sums per thread, its factor gathered by a table of terms",
    .place = Place::cuda,
};

const Registration registration{info, make};

}  // namespace
}  // namespace stepladder::convolution

// Packing: the product of im2col on the register tile, without the unfolded matrix. Only a few
// hundred columns exist at a time: they are unfolded straight into the panels of the tile, in L2
// (correlation.hpp, backward_weights.hpp).
//
// Expected: near the peak of the vector units, less the unfolding: one vector copied per
// out_channels / groups vector FMAs.
#include "kernels/common/cpu/simd.hpp"
#include "kernels/convolution/cpu/tiled/backward_weights.hpp"
#include "kernels/convolution/cpu/tiled/correlation.hpp"
#include "kernels/convolution/cpu/tiled/tiled.hpp"

namespace stepladder::convolution {

std::unique_ptr<ThreadedConvolution> STEPLADDER_ISA::make_tiled(const Problem& problem,
                                                                int threads) {
  if (problem.direction == Direction::backward_weights)
    return std::make_unique<TiledBackwardWeights>(problem, threads);
  return std::make_unique<TiledCorrelation>(problem, threads);
}

namespace {

class Packed final : public Plan {
 public:
  Packed(const Problem& problem, const Resources&) : convolution_(make_tiled(problem, 1)) {}
  void run(const Operands& operands) override {
    for (int phase = 0; phase < convolution_->phases(); ++phase)
      convolution_->run_phase(phase, 0, operands);
  }

 private:
  std::unique_ptr<ThreadedConvolution> convolution_;
};

constexpr VariantInfo info{
    .name = "packed",
    .technique = Technique::simd,
    .builds_on = "tiled",
    .adds = "unfolded straight into packed panels, a few hundred pixels at a time",
    .idea = Idea::packing,
    .isa = build_isa,
};

const Registration registration{info, make_plan<Convolution, Packed>};

}  // namespace
}  // namespace stepladder::convolution

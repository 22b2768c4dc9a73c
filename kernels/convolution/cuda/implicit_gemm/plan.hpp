// Plans of implicit GEMMs without split-K, for all directions and the tiles of one arithmetic.
#pragma once

#include <memory>
#include <vector>

#include "kernels/convolution/cuda/implicit_gemm/backward_weights.hpp"
#include "kernels/convolution/cuda/implicit_gemm/correlation.hpp"

namespace stepladder::convolution {

template <class Tiles>
class CorrelationPlan final : public Plan {
 public:
  explicit CorrelationPlan(const Problem& p) : forward_(p.direction == Direction::forward) {
    for (const CudaCorrelation& c : correlations(p)) gemms_.emplace_back(c);
  }
  void run(const Operands& o) override {
    for (const CorrelationGemm<Tiles>& gemm : gemms_)
      gemm.run(forward_ ? o.x : o.y, o.w, forward_ ? o.y : o.x);
  }

 private:
  bool forward_;
  std::vector<CorrelationGemm<Tiles>> gemms_;
};

template <class Tiles>
class BackwardWeightsPlan final : public Plan {
 public:
  explicit BackwardWeightsPlan(const Problem& p) : gemm_(p) {}
  void run(const Operands& o) override { gemm_.run(o, o.w); }

 private:
  BackwardWeightsGemm<Tiles> gemm_;
};

template <class Tiles>
std::unique_ptr<Plan> make_implicit_gemm(const Problem& p) {
  require_int_indices(p);
  if (p.direction == Direction::backward_weights)
    return std::make_unique<BackwardWeightsPlan<Tiles>>(p);
  return std::make_unique<CorrelationPlan<Tiles>>(p);
}

}  // namespace stepladder::convolution

// All three directions as matrix products that are not split, with the tiles of one kind of arithmetic.
#pragma once

#include <memory>
#include <vector>

#include "kernels/convolution/cuda/implicit_gemm/correlation.hpp"
#include "kernels/convolution/cuda/implicit_gemm/backward_weights.hpp"

namespace stepladder::convolution {

template <class Tiles>
class CorrelationPlan final : public Plan {
 public:
  explicit CorrelationPlan(const Problem& p) : forward_(p.direction == Direction::forward) {
    for (const Correlation& c : correlations(p)) products_.emplace_back(c);
  }
  void run(const Operands& o) override {
    for (const CorrelationProduct<Tiles>& product : products_)
      product.run(forward_ ? o.x : o.y, o.w, forward_ ? o.y : o.x);
  }

 private:
  bool forward_;
  std::vector<CorrelationProduct<Tiles>> products_;
};

template <class Tiles>
class GradientPlan final : public Plan {
 public:
  explicit GradientPlan(const Problem& p) : gradient_(p) {}
  void run(const Operands& o) override { gradient_.run(o, o.w); }

 private:
  WeightGradient<Tiles> gradient_;
};

template <class Tiles>
std::unique_ptr<Plan> make_implicit_gemm(const Problem& p) {
  require_int_indices(p);
  if (p.direction == Direction::backward_weights) return std::make_unique<GradientPlan<Tiles>>(p);
  return std::make_unique<CorrelationPlan<Tiles>>(p);
}

}  // namespace stepladder::convolution

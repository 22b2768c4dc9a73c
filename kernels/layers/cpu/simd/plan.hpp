// All layers on vectors, divided among threads. Most layers are bound by memory bandwidth. Sigmoid,
// tanh, softmax and the normalization compute as well, with xsimd's functions and a tanh of our
// own, which are accurate to a few units in the last place. Results do not depend on the number of
// threads.
#pragma once

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/layers/cpu/simd/bias.hpp"
#include "kernels/layers/cpu/simd/elementwise.hpp"
#include "kernels/layers/cpu/simd/normalization.hpp"
#include "kernels/layers/cpu/simd/softmax.hpp"

namespace stepladder::layers::inline STEPLADDER_ISA {

class VectorPlan final : public Plan {
 public:
  VectorPlan(const Problem& p, const Resources& resources) : p_(p), threads_(resources.threads) {
    if (p.layer == Layer::local_response_normalization && p.direction == Direction::backward)
      workspace_ = aligned_array<float>(2 * threads_ * p.channels * block_positions(p, threads_));
  }

  void run(const Operands& o) override {
    const bool forward = p_.direction == Direction::forward;
    switch (p_.layer) {
      case Layer::bias:
        return forward ? bias_forward(p_, o, threads_) : bias_backward(p_, o, threads_);
      case Layer::relu:
        return forward ? relu_forward(p_, o, threads_) : relu_backward(p_, o, threads_);
      case Layer::sigmoid:
        return forward ? sigmoid_forward(p_, o, threads_) : sigmoid_backward(p_, o, threads_);
      case Layer::tanh:
        return forward ? tanh_forward(p_, o, threads_) : tanh_backward(p_, o, threads_);
      case Layer::dropout:
        return dropout(p_, forward ? o.x : o.dy, forward ? o.y : o.dx, o.step, threads_);
      case Layer::local_response_normalization:
        return forward ? normalization_forward(p_, o, threads_)
                       : normalization_backward(p_, o, threads_, workspace_.get());
      case Layer::softmax_cross_entropy:
        return softmax(p_, o, threads_);
    }
  }

 private:
  Problem p_;
  int threads_;
  AlignedArray<float> workspace_;  // for normalization_backward
};

}  // namespace stepladder::layers::inline STEPLADDER_ISA

// A product of matrices by oneDNN's matmul primitive, which is compiled for the problem.
#pragma once

#include "kernels/common/onednn_plan.hpp"

namespace stepladder {

// prepacks: B in the layout that the library prefers, reordered by prepare(); otherwise as it lies.
template <class Operands, bool prepacks>
class OneDnnProduct : public OneDnnPlan<Operands> {
 public:
  void prepare(const Operands& o) override {
    if constexpr (prepacks) {
      const OpenMpThreads scope(this->threads_);
      b_.set_data_handle(address(o.b));
      pack_.execute(this->stream_, b_, packed_);
      this->stream_.wait();
    }
  }

  void run(const Operands& o) override {
    const OpenMpThreads scope(this->threads_);
    a_.set_data_handle(address(o.a));
    if constexpr (!prepacks) b_.set_data_handle(address(o.b));
    c_.set_data_handle(o.c);
    if constexpr (requires { o.bias; })
      if (bias_) bias_.set_data_handle(address(o.bias));
    this->execute();
    this->stream_.wait();
  }

 protected:
  using Desc = dnnl::memory::desc;
  using OneDnnPlan<Operands>::OneDnnPlan;

  // The operands as they lie: a [m, k], b [k, n], c [m, n], bias [1, n]; null: without a bias.
  void create(const Desc& a, const Desc& b, const Desc& c, const Desc* bias = nullptr,
              const dnnl::primitive_attr& attributes = {}) {
    const Desc of_b = prepacks ? in_any_layout(b) : b;
    const auto described =
        bias == nullptr ? describe<dnnl::matmul>(this->engine_, attributes, a, of_b, c)
                        : describe<dnnl::matmul>(this->engine_, attributes, a, of_b, *bias, c);
    this->primitive_ = dnnl::matmul(described);
    a_ = this->memory_of(a);
    b_ = this->memory_of(b);
    c_ = this->memory_of(c);
    if constexpr (prepacks) {
      packed_ = dnnl::memory(described.weights_desc(), this->engine_);
      pack_ = dnnl::reorder(b_, packed_);
    }
    this->arguments_ = {
        {DNNL_ARG_SRC, a_}, {DNNL_ARG_WEIGHTS, prepacks ? packed_ : b_}, {DNNL_ARG_DST, c_}};
    if (bias == nullptr) return;
    bias_ = this->memory_of(*bias);
    this->arguments_.emplace(DNNL_ARG_BIAS, bias_);
  }

 private:
  static void* address(const void* operand) { return const_cast<void*>(operand); }

  dnnl::memory a_, b_, c_, bias_, packed_;
  dnnl::reorder pack_;
};

}  // namespace stepladder

// oneDNN's matmul primitive on operands that it rounds to bf16, in layouts that it chooses. C is
// fp32.
#include "kernels/common/cpu/extensions.hpp"
#include "kernels/matmul/vendor/onednn_plan.hpp"

namespace stepladder::matmul {
namespace {

using dnnl::memory;

class OneDnnBf16 final : public OneDnnPlan<Operands> {
 public:
  OneDnnBf16(const Problem& p, const Resources& resources) : OneDnnPlan(resources) {
    require_here(Extension::avx512_bf16);
    const OpenMpThreads scope(threads_);
    const auto any = [](std::int64_t rows, std::int64_t columns) {
      return memory::desc({rows, columns}, memory::data_type::bf16, memory::format_tag::any);
    };
    const memory::desc c = onednn_matrix(p.m, p.n, false);
    create_or_throw("oneDNN has no product of bf16 on this CPU", [&] {
      const auto described = describe<dnnl::matmul>(engine_, {}, any(p.m, p.k), any(p.k, p.n), c);
      primitive_ = dnnl::matmul(described);
      a_.set(onednn_matrix(p.m, p.k, p.transpose_a), described.src_desc(), engine_);
      b_.set(onednn_matrix(p.k, p.n, p.transpose_b), described.weights_desc(), engine_);
    });
    c_ = memory_of(c);
    arguments_ = {{DNNL_ARG_SRC, a_.chosen}, {DNNL_ARG_WEIGHTS, b_.chosen}, {DNNL_ARG_DST, c_}};
  }

  void run(const Operands& o) override {
    const OpenMpThreads scope(threads_);
    a_.plain.set_data_handle(const_cast<float*>(o.a));
    b_.plain.set_data_handle(const_cast<float*>(o.b));
    a_.reorder_before(stream_);
    b_.reorder_before(stream_);
    c_.set_data_handle(o.c);
    execute();
    stream_.wait();
  }

 private:
  ReorderedMemory a_, b_;
  memory c_;
};

constexpr VariantInfo info{
    .name = "onednn_bf16",
    .technique = Technique::vendor,
    .adds = "oneDNN's matmul primitive on operands that run() rounds to bf16",
    .precision = Precision::bf16,
    .threaded = true,
    .operand_error = 0x1p-7 + 0x1p-16,  // (1 + 2^-8)^2 - 1
};

const Registration registration{info, make_plan<Matmul, OneDnnBf16>};

}  // namespace
}  // namespace stepladder::matmul

// oneDNN's matmul primitive on plain row-major memory; transposes are expressed as strides. The
// plan compiles the primitive for the problem. The epilogue is fused: a bias and a post-op.
#include "kernels/common/onednn.hpp"

#include <unordered_map>

#include "kernels/common/cpu/openmp_threads.hpp"
#include "kernels/matmul/matmul.hpp"

namespace stepladder::matmul {
namespace {

dnnl::memory::desc matrix(std::int64_t rows, std::int64_t columns, bool transposed) {
  using Dims = dnnl::memory::dims;
  return {Dims{rows, columns}, dnnl::memory::data_type::f32,
          transposed ? Dims{1, rows} : Dims{columns, 1}};
}

class OneDnn final : public Plan {
 public:
  OneDnn(const Problem& p, const Resources& resources) : threads_(resources.threads) {
    const OpenMpThreads scope(threads_);
    const auto a = matrix(p.m, p.k, p.transpose_a);
    const auto b = matrix(p.k, p.n, p.transpose_b);
    const auto c = matrix(p.m, p.n, false);
    a_ = dnnl::memory(a, engine_, nullptr);
    b_ = dnnl::memory(b, engine_, nullptr);
    c_ = dnnl::memory(c, engine_, nullptr);
    arguments_ = {{DNNL_ARG_SRC, a_}, {DNNL_ARG_WEIGHTS, b_}, {DNNL_ARG_DST, c_}};
    if (p.epilogue == Epilogue::none) {
      multiply_ = dnnl::matmul(describe<dnnl::matmul>(engine_, {}, a, b, c));
      return;
    }
    const auto bias = matrix(1, p.n, false);
    bias_ = dnnl::memory(bias, engine_, nullptr);
    arguments_.emplace(DNNL_ARG_BIAS, bias_);
    multiply_ = dnnl::matmul(describe<dnnl::matmul>(engine_, post_ops(p.epilogue), a, b, bias, c));
  }

  void run(const Operands& o) override {
    const OpenMpThreads scope(threads_);
    a_.set_data_handle(const_cast<float*>(o.a));
    b_.set_data_handle(const_cast<float*>(o.b));
    c_.set_data_handle(o.c);
    if (o.bias != nullptr) bias_.set_data_handle(const_cast<float*>(o.bias));
    multiply_.execute(stream_, arguments_);
    stream_.wait();
  }

  std::string remark() const override { return onednn_remark(multiply_); }

 private:
  static dnnl::primitive_attr post_ops(Epilogue epilogue) {
    dnnl::post_ops after;
    if (epilogue == Epilogue::bias_relu) append_eltwise(after, dnnl::algorithm::eltwise_relu);
    dnnl::primitive_attr attributes;
    attributes.set_post_ops(after);
    return attributes;
  }

  int threads_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  dnnl::memory a_, b_, c_, bias_;
  dnnl::matmul multiply_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

constexpr VariantInfo info{
    .name = "onednn",
    .technique = Technique::vendor,
    .adds = "oneDNN's matmul primitive, compiled for the problem at run time",
    .threaded = true,
    .epilogue = true,
};

const Registration registration{info, make_plan<Matmul, OneDnn>};

}  // namespace
}  // namespace stepladder::matmul

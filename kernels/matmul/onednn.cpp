// oneDNN's matmul primitive on plain row-major memory; transposes are strides. The primitive is
// compiled for the problem with the plan; run() hands it the operands.
#include <dnnl.hpp>
#include <unordered_map>

#include "kernels/common/openmp_threads.hpp"
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
    multiply_ = dnnl::matmul({{a, b, c}, engine_});
    arguments_ = {{DNNL_ARG_SRC, a_}, {DNNL_ARG_WEIGHTS, b_}, {DNNL_ARG_DST, c_}};
  }

  void run(const Operands& o) override {
    const OpenMpThreads scope(threads_);
    a_.set_data_handle(const_cast<float*>(o.a), stream_);
    b_.set_data_handle(const_cast<float*>(o.b), stream_);
    c_.set_data_handle(o.c, stream_);
    multiply_.execute(stream_, arguments_);
    stream_.wait();
  }

 private:
  int threads_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  dnnl::memory a_, b_, c_;
  dnnl::matmul multiply_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

constexpr VariantInfo info{
    .name = "onednn",
    .technique = Technique::vendor,
    .adds = "oneDNN's matmul primitive, compiled at run time for the problem",
    .threaded = true,
};

const Registration registration{info, make_plan<Matmul, OneDnn>};

}  // namespace
}  // namespace stepladder::matmul

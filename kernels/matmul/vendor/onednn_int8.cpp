// oneDNN's matmul primitive on operands quantized to int8, the weights by prepare(), A by run(),
// with one step for each: its reorder into the weights' layout knows no other.
#include "kernels/common/onednn_plan.hpp"
#include "kernels/common/onednn_quantized.hpp"
#include "kernels/matmul/matmul.hpp"

namespace stepladder::matmul {
namespace {

constexpr VariantInfo info{
    .name = "onednn_int8",
    .technique = Technique::vendor,
    .adds = "oneDNN's matmul primitive of int8; run() quantizes A, prepare() quantizes B",
    .precision = Precision::int8,
    .threaded = true,
    .prepacked = true,
    .quantization_error = 2.0 / 127 + 1.0 / (127 * 127),
};

#if DNNL_VERSION_MAJOR >= 3

static_assert(info.quantization_error == narrow::quantization_error);

using dnnl::memory;

class OneDnnInt8 final : public OneDnnPlan<Operands> {
 public:
  OneDnnInt8(const Problem& p, const Resources& resources) : OneDnnPlan(resources), problem_(p) {
    narrow::require_quantized(!p.transpose_a && !p.transpose_b, p.k);
    const OpenMpThreads scope(threads_);
    const auto matrix = [](std::int64_t rows, std::int64_t columns, memory::data_type type,
                           memory::format_tag tag) {
      return memory::desc({rows, columns}, type, tag);
    };
    using Type = memory::data_type;
    using Tag = memory::format_tag;
    const memory::desc c = matrix(p.m, p.n, Type::f32, Tag::ab);
    dnnl::primitive_attr attributes;
    attributes.set_scales_mask(DNNL_ARG_SRC, 0);
    attributes.set_scales_mask(DNNL_ARG_WEIGHTS, 0);
    create_or_throw("oneDNN has no such product of int8 on this CPU", [&] {
      const auto described =
          describe<dnnl::matmul>(engine_, attributes, matrix(p.m, p.k, Type::s8, Tag::any),
                                 matrix(p.k, p.n, Type::s8, Tag::any), c);
      primitive_ = dnnl::matmul(described);
      a_.set(matrix(p.m, p.k, Type::f32, Tag::ab), described.src_desc(), engine_);
      b_.set(matrix(p.k, p.n, Type::f32, Tag::ab), described.weights_desc(), engine_);
    });
    c_ = memory_of(c);
    arguments_ = {{DNNL_ARG_SRC, a_.chosen},
                  {DNNL_ARG_WEIGHTS, b_.chosen},
                  {DNNL_ARG_DST, c_},
                  {DNNL_ARG_ATTR_SCALES | DNNL_ARG_SRC, a_.steps},
                  {DNNL_ARG_ATTR_SCALES | DNNL_ARG_WEIGHTS, b_.steps}};
  }

  void prepare(const Operands& o) override {
    const OpenMpThreads scope(threads_);
    b_.quantize(stream_, o.b, problem_.k * problem_.n, threads_);
    stream_.wait();
  }

  void run(const Operands& o) override {
    const OpenMpThreads scope(threads_);
    a_.quantize(stream_, o.a, problem_.m * problem_.k, threads_);
    c_.set_data_handle(o.c);
    execute();
    stream_.wait();
  }

 private:
  Problem problem_;
  QuantizedMemory a_, b_;
  memory c_;
};

const Registration registration{info, make_plan<Matmul, OneDnnInt8>};

#else
const Registration registration{info, "built with oneDNN 2; needs version 3 (make libraries)"};
#endif

}  // namespace
}  // namespace stepladder::matmul

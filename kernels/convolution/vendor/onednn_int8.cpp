// oneDNN's direct convolution on operands quantized to int8: the weights by prepare(), a step for
// each output channel; x by run(), one step for all of it.
#include "kernels/common/onednn_plan.hpp"
#include "kernels/common/onednn_quantized.hpp"
#include "kernels/convolution/convolution.hpp"

namespace stepladder::convolution {
namespace {

constexpr VariantInfo info{
    .name = "onednn_int8",
    .technique = Technique::vendor,
    .adds = "oneDNN's direct convolution of int8; run() quantizes x, prepare() quantizes w",
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
    narrow::require_quantized(p.direction == Direction::forward,
                              p.group_in() * p.kernel_h * p.kernel_w);
    const OpenMpThreads scope(threads_);
    create_or_throw("oneDNN has no such convolution of int8 on this CPU", [&] { create(); });
  }

  void prepare(const Operands& o) override {
    const OpenMpThreads scope(threads_);
    const std::int64_t filter = problem_.group_in() * problem_.kernel_h * problem_.kernel_w;
    w_.quantize_channels(stream_, o.w, filter);
    stream_.wait();
  }

  void run(const Operands& o) override {
    const OpenMpThreads scope(threads_);
    x_.quantize(stream_, o.x, problem_.x_count(), threads_);
    y_.plain.set_data_handle(o.y);
    execute();
    y_.reorder_after(stream_);
    stream_.wait();
  }

 private:
  void create() {
    const Problem& p = problem_;
    using Type = memory::data_type;
    using Tag = memory::format_tag;
    const bool grouped = p.groups > 1;
    const memory::dims x{p.batch, p.in_channels, p.height, p.width},
        y{p.batch, p.out_channels, p.out_h(), p.out_w()}, strides{p.stride_h, p.stride_w},
        padding{p.pad_h, p.pad_w},
        w = grouped ? memory::dims{p.groups, p.group_out(), p.group_in(), p.kernel_h, p.kernel_w}
                    : memory::dims{p.out_channels, p.in_channels, p.kernel_h, p.kernel_w};
    const int channels = grouped ? 1 << 0 | 1 << 1 : 1 << 0;
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    attributes.set_scales_mask(DNNL_ARG_SRC, 0);
    attributes.set_scales_mask(DNNL_ARG_WEIGHTS, channels);
    const auto described = describe<dnnl::convolution_forward>(
        engine_, attributes, dnnl::prop_kind::forward_inference,
        dnnl::algorithm::convolution_direct, memory::desc(x, Type::s8, Tag::any),
        memory::desc(w, Type::s8, Tag::any), memory::desc(y, Type::f32, Tag::any), strides, padding,
        padding);
    primitive_ = dnnl::convolution_forward(described);
    x_.set({x, Type::f32, Tag::nchw}, described.src_desc(), engine_);
    w_.set({w, Type::f32, grouped ? Tag::goihw : Tag::oihw}, described.weights_desc(), engine_,
           channels, p.out_channels);
    y_.set({y, Type::f32, Tag::nchw}, described.dst_desc(), engine_, true);
    arguments_ = {{DNNL_ARG_SRC, x_.chosen},
                  {DNNL_ARG_WEIGHTS, w_.chosen},
                  {DNNL_ARG_DST, y_.chosen},
                  {DNNL_ARG_SCRATCHPAD, zeroed_memory(described.scratchpad_desc(), engine_)},
                  {DNNL_ARG_ATTR_SCALES | DNNL_ARG_SRC, x_.steps},
                  {DNNL_ARG_ATTR_SCALES | DNNL_ARG_WEIGHTS, w_.steps}};
  }

  Problem problem_;
  QuantizedMemory x_, w_;
  ReorderedMemory y_;
};

const Registration registration{info, make_plan<Convolution, OneDnnInt8>};

#else
const Registration registration{info, "built with oneDNN 2; needs version 3 (make libraries)"};
#endif

}  // namespace
}  // namespace stepladder::convolution

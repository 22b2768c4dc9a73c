// oneDNN's reorder primitive.
#include "kernels/common/onednn_plan.hpp"
#include "kernels/reorder/reorder.hpp"

namespace stepladder::reorder {
namespace {

using dnnl::memory;

memory::format_tag tag_of(Layout layout) {
  switch (layout) {
    case Layout::nchw:
      return memory::format_tag::nchw;
    case Layout::nhwc:
      return memory::format_tag::nhwc;
    case Layout::chwn:
      return memory::format_tag::chwn;
    case Layout::nchw16c:
      break;
  }
  return memory::format_tag::nChw16c;
}

memory::data_type type_of(Format format) {
  switch (format) {
    case Format::fp32:
      return memory::data_type::f32;
    case Format::bf16:
      return memory::data_type::bf16;
    case Format::fp16:
      return memory::data_type::f16;
    case Format::int8:
      break;
  }
  return memory::data_type::s8;
}

class OneDnn final : public OneDnnPlan<Operands> {
 public:
  OneDnn(const Problem& p, const Resources& resources) : OneDnnPlan(resources) {
    const OpenMpThreads scope(threads_);
    if (p.changes_format()) {  // as one row: for images it has slower kernels
      x_ = memory_of({{p.x_count()}, type_of(p.from_format), memory::format_tag::a});
      y_ = memory_of({{p.x_count()}, type_of(p.to_format), memory::format_tag::a});
    } else {
      const memory::dims sizes{p.batch, p.channels, p.height, p.width};
      x_ = memory_of({sizes, memory::data_type::f32, tag_of(p.from)});
      y_ = memory_of({sizes, memory::data_type::f32, tag_of(p.to)});
    }
    create_or_throw("oneDNN does not implement it on this CPU",
                    [&] { primitive_ = dnnl::reorder(x_, y_); });
    arguments_ = {{DNNL_ARG_FROM, x_}, {DNNL_ARG_TO, y_}};
  }

  void run(const Operands& o) override {
    const OpenMpThreads scope(threads_);
    x_.set_data_handle(const_cast<void*>(o.x));
    y_.set_data_handle(o.y);
    execute();
    stream_.wait();
  }

 private:
  memory x_, y_;
};

constexpr VariantInfo info{
    .name = "onednn",
    .technique = Technique::vendor,
    .adds = "oneDNN's reorder primitive",
    .threaded = true,
};

const Registration registration{info, make_plan<Reorder, OneDnn>};

}  // namespace
}  // namespace stepladder::reorder

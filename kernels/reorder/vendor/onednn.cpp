// oneDNN's reorder primitive.
#include "kernels/common/onednn.hpp"

#include "kernels/common/cpu/openmp_threads.hpp"
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

class OneDnn final : public Plan {
 public:
  OneDnn(const Problem& p, const Resources& resources) : threads_(resources.threads) {
    const OpenMpThreads scope(threads_);
    if (p.changes_format()) {  // as one row: for images it has slower kernels
      x_ = memory({{p.x_count()}, type_of(p.from_format), memory::format_tag::a}, engine_, nullptr);
      y_ = memory({{p.x_count()}, type_of(p.to_format), memory::format_tag::a}, engine_, nullptr);
    } else {
      const memory::dims sizes{p.batch, p.channels, p.height, p.width};
      x_ = memory({sizes, memory::data_type::f32, tag_of(p.from)}, engine_, nullptr);
      y_ = memory({sizes, memory::data_type::f32, tag_of(p.to)}, engine_, nullptr);
    }
    try {
      reorder_ = dnnl::reorder(x_, y_);
    } catch (const dnnl::error& error) {
      if (error.status != dnnl_unimplemented) throw;
      throw Unsupported("oneDNN does not implement it on this CPU");
    }
  }

  void run(const Operands& o) override {
    const OpenMpThreads scope(threads_);
    x_.set_data_handle(const_cast<void*>(o.x));
    y_.set_data_handle(o.y);
    reorder_.execute(stream_, x_, y_);
    stream_.wait();
  }

  std::string remark() const override { return onednn_remark(reorder_); }

 private:
  int threads_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  memory x_, y_;
  dnnl::reorder reorder_;
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

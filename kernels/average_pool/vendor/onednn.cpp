// oneDNN's average pooling on plain NCHW.
#include "kernels/common/onednn.hpp"

#include <unordered_map>

#include "kernels/average_pool/average_pool.hpp"
#include "kernels/common/cpu/openmp_threads.hpp"

namespace stepladder::average_pool {
namespace {

using dnnl::memory;

class OneDnn final : public Plan {
 public:
  OneDnn(const Problem& p, const Resources& resources) : threads_(resources.threads) {
    const OpenMpThreads scope(threads_);
    const bool is_forward = p.direction == Direction::forward;
    const memory::desc x({p.batch, p.channels, p.height, p.width}, memory::data_type::f32,
                         memory::format_tag::nchw);
    const memory::desc y({p.batch, p.channels, p.out_h(), p.out_w()}, memory::data_type::f32,
                         memory::format_tag::nchw);
    const memory::dims stride{p.stride_h, p.stride_w}, window{p.window_h, p.window_w},
        pad{p.pad_h, p.pad_w}, dilation{0, 0};

    const auto algorithm = p.count == Count::include_padding
                               ? dnnl::algorithm::pooling_avg_include_padding
                               : dnnl::algorithm::pooling_avg_exclude_padding;
    const auto forward =
        describe<PoolingForward>(engine_, {}, dnnl::prop_kind::forward_training, algorithm, x, y,
                                 stride, window, dilation, pad, pad);
    if (is_forward)
      pool_ = PoolingForward(forward);
    else
      pool_ = PoolingBackward(describe_backward<PoolingBackward>(
          engine_, {}, forward, algorithm, x, y, stride, window, dilation, pad, pad));

    x_ = memory(x, engine_, nullptr);
    y_ = memory(y, engine_, nullptr);
    arguments_ = {{is_forward ? DNNL_ARG_SRC : DNNL_ARG_DIFF_SRC, x_},
                  {is_forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, y_}};
  }

  void run(const Operands& o) override {
    const OpenMpThreads scope(threads_);
    x_.set_data_handle(o.x);
    y_.set_data_handle(o.y);
    pool_.execute(stream_, arguments_);
    stream_.wait();
  }

 private:
  int threads_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  dnnl::primitive pool_;
  memory x_, y_;
  std::unordered_map<int, memory> arguments_;
};

constexpr VariantInfo info{
    .name = "onednn",
    .technique = Technique::vendor,
    .adds = "oneDNN's pooling primitive on the plain layout",
    .threaded = true,
};

const Registration registration{info, make_plan<AveragePool, OneDnn>};

}  // namespace
}  // namespace stepladder::average_pool

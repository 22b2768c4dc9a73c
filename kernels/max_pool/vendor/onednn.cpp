// oneDNN's max pooling on plain NCHW. Its workspace has the format of argmax, one byte per output,
// so the operand is used as the workspace without conversion.
#include "kernels/common/onednn.hpp"

#include <algorithm>
#include <unordered_map>

#include "kernels/common/cpu/openmp_threads.hpp"
#include "kernels/max_pool/max_pool.hpp"

namespace stepladder::max_pool {
namespace {

using dnnl::memory;

class OneDnn final : public Plan {
 public:
  OneDnn(const Problem& p, const Resources& resources) : threads_(resources.threads) {
    const OpenMpThreads scope(threads_);
    const bool is_forward = p.direction == Direction::forward;
    const memory::desc x({p.batch, p.channels, p.height, p.width}, memory::data_type::f32,
                         memory::format_tag::nchw);
    const memory::dims outputs{p.batch, p.channels, p.out_h(), p.out_w()};
    const memory::desc y(outputs, memory::data_type::f32, memory::format_tag::nchw);
    const memory::desc argmax(outputs, memory::data_type::u8, memory::format_tag::nchw);
    const memory::dims stride{p.stride_h, p.stride_w}, window{p.window_h, p.window_w},
        pad{p.pad_h, p.pad_w}, dilation{0, 0};

    constexpr auto algorithm = dnnl::algorithm::pooling_max;
    const auto forward =
        describe<PoolingForward>(engine_, {}, dnnl::prop_kind::forward_training, algorithm, x, y,
                                 stride, window, dilation, pad, pad);
    const auto backward = describe_backward<PoolingBackward>(engine_, {}, forward, algorithm, x, y,
                                                             stride, window, dilation, pad, pad);
    if ((is_forward ? forward.workspace_desc() : backward.workspace_desc()) != argmax)
      throw Unsupported(
          "oneDNN stores the arg-max of this window in another format than one byte per output");
    pool_ = is_forward ? dnnl::primitive(PoolingForward(forward))
                       : dnnl::primitive(PoolingBackward(backward));

    x_ = memory(x, engine_, nullptr);
    y_ = memory(y, engine_, nullptr);
    argmax_ = memory(argmax, engine_, nullptr);
    arguments_ = {{is_forward ? DNNL_ARG_SRC : DNNL_ARG_DIFF_SRC, x_},
                  {is_forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, y_},
                  {DNNL_ARG_WORKSPACE, argmax_}};
  }

  void run(const Operands& o) override {
    const OpenMpThreads scope(threads_);
    x_.set_data_handle(o.x);
    y_.set_data_handle(o.y);
    argmax_.set_data_handle(o.argmax);
    pool_.execute(stream_, arguments_);
    stream_.wait();
  }

 private:
  int threads_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  dnnl::primitive pool_;
  memory x_, y_, argmax_;
  std::unordered_map<int, memory> arguments_;
};

constexpr VariantInfo info{
    .name = "onednn",
    .technique = Technique::vendor,
    .adds = "oneDNN's pooling primitive on the plain layout",
    .threaded = true,
};

const Registration registration{info, make_plan<MaxPool, OneDnn>};

}  // namespace
}  // namespace stepladder::max_pool

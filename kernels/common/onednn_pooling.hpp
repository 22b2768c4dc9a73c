// oneDNN's pooling in the layout of the problem, for max_pool and average_pool.
#pragma once

#include "kernels/common/onednn_plan.hpp"

namespace stepladder {

template <class Operands>
class OneDnnPooling : public OneDnnPlan<Operands> {
 protected:
  // The workspace of maxima must have the format of argmax, one byte per output: the operand is
  // used as the workspace without conversion. Throws Unsupported where it has another, or would
  // lack the positions in padding channels.
  template <class Problem>
  OneDnnPooling(const Problem& p, const Resources& resources, dnnl::algorithm algorithm)
      : OneDnnPlan<Operands>(resources) {
    const OpenMpThreads scope(this->threads_);
    const bool is_forward = p.direction == decltype(p.direction)::forward;
    const bool has_argmax = algorithm == dnnl::algorithm::pooling_max;
    const dnnl::memory::dims outputs{p.batch, p.channels, p.out_h(), p.out_w()};
    const auto f32 = dnnl::memory::data_type::f32;
    const auto layout = p.layout == Layout::nchw16c ? dnnl::memory::format_tag::nChw16c
                                                    : dnnl::memory::format_tag::nchw;
    const dnnl::memory::desc x({p.batch, p.channels, p.height, p.width}, f32, layout);
    const dnnl::memory::desc y(outputs, f32, layout);
    const dnnl::memory::desc argmax(outputs, dnnl::memory::data_type::u8, layout);
    const dnnl::memory::dims stride{p.stride_h, p.stride_w}, window{p.window_h, p.window_w},
        pad{p.pad_h, p.pad_w}, dilation{0, 0};

    const auto forward =
        describe<PoolingForward>(this->engine_, {}, dnnl::prop_kind::forward_training, algorithm, x,
                                 y, stride, window, dilation, pad, pad);
    const auto backward = describe_backward<PoolingBackward>(
        this->engine_, {}, forward, algorithm, x, y, stride, window, dilation, pad, pad);
    if (has_argmax && (is_forward ? forward.workspace_desc() : backward.workspace_desc()) != argmax)
      throw Unsupported(
          "oneDNN stores the arg-max of this window in another format than one byte per output");
    if (has_argmax && is_forward && p.layout == Layout::nchw16c && p.channels % 16 != 0)
      throw Unsupported("oneDNN does not write the arg-max of padding channels");
    this->primitive_ = is_forward ? dnnl::primitive(PoolingForward(forward))
                                  : dnnl::primitive(PoolingBackward(backward));

    x_ = this->memory_of(x);
    y_ = this->memory_of(y);
    argmax_ = this->memory_of(argmax);
    this->arguments_ = {{is_forward ? DNNL_ARG_SRC : DNNL_ARG_DIFF_SRC, x_},
                        {is_forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, y_}};
    if (has_argmax) this->arguments_.emplace(DNNL_ARG_WORKSPACE, argmax_);
  }

  void pool(float* x, float* y, void* argmax = nullptr) {
    const OpenMpThreads scope(this->threads_);
    x_.set_data_handle(x);
    y_.set_data_handle(y);
    argmax_.set_data_handle(argmax);
    this->execute();
    this->stream_.wait();
  }

 private:
  dnnl::memory x_, y_, argmax_;
};

}  // namespace stepladder

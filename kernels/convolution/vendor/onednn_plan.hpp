// A convolution by oneDNN. Operands are in the layout of the problem, NCHW or NCHW16c; oneDNN
// chooses the layouts of the convolution, and run() includes the reorders, which round the operands
// if it multiplies bf16. The result is fp32.
#pragma once

#include "kernels/common/onednn_plan.hpp"
#include "kernels/convolution/convolution.hpp"

namespace stepladder::convolution {

template <dnnl::algorithm algorithm,
          dnnl::memory::data_type multiplied = dnnl::memory::data_type::f32>
class OneDnn final : public OneDnnPlan<Operands> {
 public:
  OneDnn(const Problem& problem, const Resources& resources)
      : OneDnnPlan(resources), direction_(problem.direction) {
    constexpr std::int64_t block = 16;
    if (problem.layout == Layout::nchw16c && problem.groups > 1 && problem.group_out() % block != 0)
      throw Unsupported("a group does not fill whole blocks of output channels");
    const OpenMpThreads scope(threads_);
    create_or_throw("oneDNN has no such algorithm for this problem on this CPU",
                    [&] { create(problem); });
  }

  void run(const Operands& operands) override {
    const OpenMpThreads scope(threads_);
    x_.plain.set_data_handle(operands.x);
    w_.plain.set_data_handle(operands.w);
    y_.plain.set_data_handle(operands.y);
    for (ReorderedMemory* tensor : {&x_, &w_, &y_})
      if (tensor != &result()) tensor->reorder_before(stream_);
    execute();
    result().reorder_after(stream_);
    stream_.wait();
  }

 private:
  using Memory = dnnl::memory;

  ReorderedMemory& result() {
    switch (direction_) {
      case Direction::forward:
        return y_;
      case Direction::backward_data:
        return x_;
      case Direction::backward_weights:
        return w_;
    }
    return y_;
  }

  void create(const Problem& p) {
    const Memory::dims x{p.batch, p.in_channels, p.height, p.width};
    const Memory::dims y{p.batch, p.out_channels, p.out_h(), p.out_w()};
    const bool grouped = p.groups > 1;
    const Memory::dims w =
        grouped ? Memory::dims{p.groups, p.group_out(), p.group_in(), p.kernel_h, p.kernel_w}
                : Memory::dims{p.out_channels, p.in_channels, p.kernel_h, p.kernel_w};
    const Memory::dims strides{p.stride_h, p.stride_w}, padding{p.pad_h, p.pad_w};

    const auto type = Memory::data_type::f32;
    const auto any = [](const Memory::dims& dims, Memory::data_type of) {
      return Memory::desc(dims, of, Memory::format_tag::any);
    };
    const auto any_x = any(x, multiplied), any_w = any(w, multiplied), any_y = any(y, multiplied);
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);

    // The backward primitives need the descriptor of the forward one as a hint.
    const bool is_forward = direction_ == Direction::forward;
    const auto forward = describe<dnnl::convolution_forward>(
        engine_, attributes,
        is_forward ? dnnl::prop_kind::forward_inference : dnnl::prop_kind::forward_training,
        algorithm, any_x, any_w, is_forward ? any(y, type) : any_y, strides, padding, padding);

    const auto set = [&](const Memory::desc& x_chosen, const Memory::desc& w_chosen,
                         const Memory::desc& y_chosen, const Memory::desc& scratch) {
      using Tag = Memory::format_tag;
      const bool blocked = p.layout == Layout::nchw16c;
      const Tag image = blocked ? Tag::nChw16c : Tag::nchw;
      const Tag filters =
          blocked ? (grouped ? Tag::gOihw16o : Tag::Oihw16o) : (grouped ? Tag::goihw : Tag::oihw);
      x_.set({x, type, image}, x_chosen, engine_, &result() == &x_);
      w_.set({w, type, filters}, w_chosen, engine_, &result() == &w_);
      y_.set({y, type, image}, y_chosen, engine_, &result() == &y_);
      arguments_.emplace(DNNL_ARG_SCRATCHPAD, zeroed_memory(scratch, engine_));
    };
    switch (direction_) {
      case Direction::forward:
        set(forward.src_desc(), forward.weights_desc(), forward.dst_desc(),
            forward.scratchpad_desc());
        primitive_ = dnnl::convolution_forward(forward);
        arguments_.insert(
            {{DNNL_ARG_SRC, x_.chosen}, {DNNL_ARG_WEIGHTS, w_.chosen}, {DNNL_ARG_DST, y_.chosen}});
        break;
      case Direction::backward_data: {
        const auto backward = describe_backward<dnnl::convolution_backward_data>(
            engine_, attributes, forward, algorithm, any(x, type), any_w, any_y, strides, padding,
            padding);
        set(backward.diff_src_desc(), backward.weights_desc(), backward.diff_dst_desc(),
            backward.scratchpad_desc());
        primitive_ = dnnl::convolution_backward_data(backward);
        arguments_.insert({{DNNL_ARG_DIFF_SRC, x_.chosen},
                           {DNNL_ARG_WEIGHTS, w_.chosen},
                           {DNNL_ARG_DIFF_DST, y_.chosen}});
        break;
      }
      case Direction::backward_weights: {
        const auto backward = describe_backward<dnnl::convolution_backward_weights>(
            engine_, attributes, forward, algorithm, any_x, any(w, type), any_y, strides, padding,
            padding);
        set(backward.src_desc(), backward.diff_weights_desc(), backward.diff_dst_desc(),
            backward.scratchpad_desc());
        primitive_ = dnnl::convolution_backward_weights(backward);
        arguments_.insert({{DNNL_ARG_SRC, x_.chosen},
                           {DNNL_ARG_DIFF_WEIGHTS, w_.chosen},
                           {DNNL_ARG_DIFF_DST, y_.chosen}});
        break;
      }
    }
  }

  Direction direction_;
  ReorderedMemory x_, w_, y_;
};

}  // namespace stepladder::convolution

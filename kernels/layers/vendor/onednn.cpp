// oneDNN's primitives on the plain layout: eltwise for the activations, binary for the bias, lrn
// for the normalization. Those of the backward pass of activations take y, as the contract does.
// On the plain layout its backward lrn is a reference implementation: that pass runs in blocks of
// channels, and includes the reorders and the forward pass, whose workspace it reads.
#include <string_view>

#include "kernels/common/onednn_plan.hpp"
#include "kernels/layers/layers.hpp"

namespace stepladder::layers {
namespace {

using Desc = dnnl::memory::desc;

constexpr auto training = dnnl::prop_kind::forward_training;
constexpr auto inference = dnnl::prop_kind::forward_inference;  // writes no workspace

// Version 3 takes the destination and its gradient with layouts of their own.
#if DNNL_VERSION_MAJOR >= 3
dnnl::eltwise_forward::primitive_desc eltwise(const dnnl::engine& engine, dnnl::algorithm f,
                                              const Desc& x) {
  return {engine, training, f, x, x, 0.0F, 0.0F};
}
dnnl::eltwise_backward::primitive_desc eltwise_backward(const dnnl::engine& engine,
                                                        dnnl::algorithm f, const Desc& x) {
  return {engine, f, x, x, x, 0.0F, 0.0F, eltwise(engine, f, x)};
}
dnnl::lrn_forward::primitive_desc lrn(const dnnl::engine& engine, dnnl::prop_kind kind,
                                      const Desc& x, const Problem& p) {
  return {engine, kind, dnnl::algorithm::lrn_across_channels, x, x, p.size, p.alpha, p.beta, p.k};
}
dnnl::lrn_backward::primitive_desc lrn_backward(const dnnl::engine& engine, const Desc& x,
                                                const Problem& p) {
  return {engine, dnnl::algorithm::lrn_across_channels, x, x, x, p.size, p.alpha, p.beta,
          p.k,    lrn(engine, training, x, p)};
}
#else
dnnl::eltwise_forward::primitive_desc eltwise(const dnnl::engine& engine, dnnl::algorithm f,
                                              const Desc& x) {
  return {{training, f, x, 0.0F, 0.0F}, engine};
}
dnnl::eltwise_backward::primitive_desc eltwise_backward(const dnnl::engine& engine,
                                                        dnnl::algorithm f, const Desc& x) {
  return {{f, x, x, 0.0F, 0.0F}, engine, eltwise(engine, f, x)};
}
dnnl::lrn_forward::primitive_desc lrn(const dnnl::engine& engine, dnnl::prop_kind kind,
                                      const Desc& x, const Problem& p) {
  return {{kind, dnnl::algorithm::lrn_across_channels, x, p.size, p.alpha, p.beta, p.k}, engine};
}
dnnl::lrn_backward::primitive_desc lrn_backward(const dnnl::engine& engine, const Desc& x,
                                                const Problem& p) {
  return {{dnnl::algorithm::lrn_across_channels, x, x, p.size, p.alpha, p.beta, p.k},
          engine,
          lrn(engine, training, x, p)};
}
#endif

class OneDnn final : public OneDnnPlan<Operands> {
 public:
  OneDnn(const Problem& p, const Resources& resources) : OneDnnPlan(resources) {
    const OpenMpThreads scope(threads_);
    const bool forward = p.direction == Direction::forward;
    const auto f32 = dnnl::memory::data_type::f32;
    const Desc x({p.batch, p.channels, p.spatial, 1}, f32, dnnl::memory::format_tag::nchw);
    switch (p.layer) {
      case Layer::bias:
        if (!forward)
          throw Unsupported(
              "oneDNN sums the gradient of a bias together with the gradient of the weights");
        add_bias(x, {{1, p.channels, 1, 1}, f32, dnnl::memory::format_tag::nchw});
        break;
      case Layer::relu:
        activate(forward, x, dnnl::algorithm::eltwise_relu,
                 dnnl::algorithm::eltwise_relu_use_dst_for_bwd);
        break;
      case Layer::sigmoid:
        activate(forward, x, dnnl::algorithm::eltwise_logistic,
                 dnnl::algorithm::eltwise_logistic_use_dst_for_bwd);
        break;
      case Layer::tanh:
        activate(forward, x, dnnl::algorithm::eltwise_tanh,
                 dnnl::algorithm::eltwise_tanh_use_dst_for_bwd);
        break;
      case Layer::local_response_normalization:
        bind(dnnl::lrn_forward(lrn(engine_, inference, x, p)), x,
             {{DNNL_ARG_SRC, &Operands::x}, {DNNL_ARG_DST, &Operands::y}});
        break;
      case Layer::dropout:
        throw Unsupported("oneDNN draws another mask");
      case Layer::softmax_cross_entropy:
        throw Unsupported("oneDNN computes softmax without the loss and its gradient");
    }
  }

  void run(const Operands& o) override {
    const OpenMpThreads scope(threads_);
    for (Array& array : arrays_) array.memory.set_data_handle(o.*array.operand);
    if (bias_) bias_.set_data_handle(const_cast<float*>(o.bias));
    execute();
    stream_.wait();
  }

 private:
  struct Array {
    int argument;
    float* Operands::*operand;
    dnnl::memory memory{};
  };

  void activate(bool forward, const Desc& x, dnnl::algorithm f, dnnl::algorithm f_from_y) {
    if (forward)
      bind(dnnl::eltwise_forward(eltwise(engine_, f, x)), x,
           {{DNNL_ARG_SRC, &Operands::x}, {DNNL_ARG_DST, &Operands::y}});
    else
      bind(dnnl::eltwise_backward(eltwise_backward(engine_, f_from_y, x)), x,
           {{DNNL_ARG_DST, &Operands::y},
            {DNNL_ARG_DIFF_DST, &Operands::dy},
            {DNNL_ARG_DIFF_SRC, &Operands::dx}});
  }

  void add_bias(const Desc& y, const Desc& bias) {
    bind(dnnl::binary(describe<dnnl::binary>(engine_, {}, dnnl::algorithm::binary_add, y, bias, y)),
         y, {{DNNL_ARG_SRC_0, &Operands::y}, {DNNL_ARG_DST, &Operands::y}});
    bias_ = memory_of(bias);
    arguments_.emplace(DNNL_ARG_SRC_1, bias_);
  }

  // All arrays have the layout of x.
  void bind(dnnl::primitive primitive, const Desc& x, std::vector<Array> arrays) {
    primitive_ = std::move(primitive);
    arrays_ = std::move(arrays);
    for (Array& array : arrays_) {
      array.memory = memory_of(x);
      arguments_.emplace(array.argument, array.memory);
    }
  }

  std::vector<Array> arrays_;
  dnnl::memory bias_;
};

class OneDnnLrnBackward final : public OneDnnPlan<Operands> {
 public:
  OneDnnLrnBackward(const Problem& p, const Resources& resources) : OneDnnPlan(resources) {
    const OpenMpThreads scope(threads_);
    using Tag = dnnl::memory::format_tag;
    const auto images = [&](Tag layout) {
      return Desc({p.batch, p.channels, p.spatial, 1}, dnnl::memory::data_type::f32, layout);
    };
    for (const Tag layout : {Tag::nChw16c, Tag::nChw8c}) {
      const auto backward = lrn_backward(engine_, images(layout), p);
      if (std::string_view(backward.impl_info_str()).starts_with("ref")) continue;
      create(images(Tag::nchw), images(layout), lrn(engine_, training, images(layout), p),
             backward);
      return;
    }
    throw Unsupported("oneDNN has only a reference implementation of this problem on this CPU");
  }

  void run(const Operands& o) override {
    const OpenMpThreads scope(threads_);
    x_.plain.set_data_handle(o.x);
    dy_.plain.set_data_handle(o.dy);
    dx_.plain.set_data_handle(o.dx);
    x_.reorder_before(stream_);
    dy_.reorder_before(stream_);
    forward_.execute(stream_, of_forward_);
    execute();
    dx_.reorder_after(stream_);
    stream_.wait();
  }

  std::string remark() const override {
    return OneDnnPlan::remark() + ", with reorders and its forward pass";
  }

 private:
  void create(const Desc& plain, const Desc& blocked,
              const dnnl::lrn_forward::primitive_desc& forward,
              const dnnl::lrn_backward::primitive_desc& backward) {
    x_.set(plain, blocked, engine_);
    dy_.set(plain, blocked, engine_);
    dx_.set(plain, blocked, engine_, true);
    const dnnl::memory y(blocked, engine_);
    const dnnl::memory workspace(forward.workspace_desc(), engine_);
    forward_ = dnnl::lrn_forward(forward);
    primitive_ = dnnl::lrn_backward(backward);
    of_forward_ = {{DNNL_ARG_SRC, x_.chosen}, {DNNL_ARG_DST, y}, {DNNL_ARG_WORKSPACE, workspace}};
    arguments_ = {{DNNL_ARG_SRC, x_.chosen},
                  {DNNL_ARG_DIFF_DST, dy_.chosen},
                  {DNNL_ARG_DIFF_SRC, dx_.chosen},
                  {DNNL_ARG_WORKSPACE, workspace}};
  }

  ReorderedMemory x_, dy_, dx_;
  dnnl::primitive forward_;  // whose workspace the primitive of the plan reads
  std::unordered_map<int, dnnl::memory> of_forward_;
};

std::unique_ptr<Plan> plan(const Problem& problem, const Resources& resources) {
  if (problem.layer == Layer::local_response_normalization &&
      problem.direction != Direction::forward)
    return std::make_unique<OneDnnLrnBackward>(problem, resources);
  return std::make_unique<OneDnn>(problem, resources);
}

constexpr VariantInfo info{
    .name = "onednn",
    .technique = Technique::vendor,
    .adds = "oneDNN's eltwise, binary and lrn primitives; backward lrn in blocks of channels",
    .threaded = true,
};

const Registration registration{info, plan};

}  // namespace
}  // namespace stepladder::layers

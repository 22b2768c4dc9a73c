// The plan of onednn and onednn_prepacked: oneDNN's matmul primitive, compiled for the problem.
#pragma once

#include <unordered_map>

#include "kernels/common/cpu/extensions.hpp"
#include "kernels/common/cpu/openmp_threads.hpp"
#include "kernels/common/onednn.hpp"
#include "kernels/low_precision/low_precision.hpp"

namespace stepladder::low_precision {

// prepacks: B in the layout that the library prefers, reordered by prepare(); otherwise as it lies,
// transposed by its strides.
template <bool prepacks>
class OneDnn final : public Plan {
 public:
  OneDnn(const Problem& p, const Resources& resources) : threads_(resources.threads) {
    using Type = dnnl::memory::data_type;
    using Dims = dnnl::memory::dims;
    if (p.format == Format::binary) throw Unsupported("oneDNN has no product of bits");
    // Some such products use a tile register that is not configured (oneDNN's issue 1661).
    if (dnnl_version()->major < 3 && p.format == Format::bf16 && p.k % 2 != 0 &&
        cpu_has(Extension::amx_bf16))
      throw Unsupported("oneDNN before version 3 may execute an illegal instruction for an odd K");
    const Type sixteen_bits = p.format == Format::bf16 ? Type::bf16 : Type::f16;
    const Type of_a = p.format == Format::int8 ? Type::u8 : sixteen_bits;
    const Type of_b = p.format == Format::int8 ? Type::s8 : sixteen_bits;
    const OpenMpThreads scope(threads_);
    const dnnl::memory::desc a(Dims{p.m, p.k}, of_a, Dims{p.k, 1});
    const dnnl::memory::desc b(Dims{p.k, p.n}, of_b, Dims{1, p.k});
    const dnnl::memory::desc any(Dims{p.k, p.n}, of_b, dnnl::memory::format_tag::any);
    const dnnl::memory::desc c(Dims{p.m, p.n}, Type::f32, Dims{p.n, 1});
    try {
      const auto described = describe<dnnl::matmul>(engine_, {}, a, prepacks ? any : b, c);
      multiply_ = dnnl::matmul(described);
      if constexpr (prepacks) packed_ = dnnl::memory(described.weights_desc(), engine_);
    } catch (const dnnl::error& error) {
      if (error.status != dnnl_unimplemented) throw;
      throw Unsupported(std::string("oneDNN has no product of ") + name_of(p.format) +
                        " on this CPU");
    }
    a_ = dnnl::memory(a, engine_, nullptr);
    b_ = dnnl::memory(b, engine_, nullptr);
    c_ = dnnl::memory(c, engine_, nullptr);
    if constexpr (prepacks) pack_ = dnnl::reorder(b_, packed_);
    arguments_ = {
        {DNNL_ARG_SRC, a_}, {DNNL_ARG_WEIGHTS, prepacks ? packed_ : b_}, {DNNL_ARG_DST, c_}};
  }

  void prepare(const Operands& o) override {
    if constexpr (prepacks) {
      const OpenMpThreads scope(threads_);
      b_.set_data_handle(const_cast<void*>(o.b));
      pack_.execute(stream_, b_, packed_);
      stream_.wait();
    }
  }

  void run(const Operands& o) override {
    const OpenMpThreads scope(threads_);
    a_.set_data_handle(const_cast<void*>(o.a));
    if constexpr (!prepacks) b_.set_data_handle(const_cast<void*>(o.b));
    c_.set_data_handle(o.c);
    multiply_.execute(stream_, arguments_);
    stream_.wait();
  }

  std::string remark() const override { return onednn_remark(multiply_); }

 private:
  int threads_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  dnnl::memory a_, b_, c_, packed_;
  dnnl::reorder pack_;
  dnnl::matmul multiply_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

}  // namespace stepladder::low_precision

// The plan of onednn and onednn_prepacked, on plain row-major memory; transposes are expressed as
// strides. The epilogue is fused: a bias and a post-op.
#pragma once

#include "kernels/common/onednn_product.hpp"
#include "kernels/matmul/matmul.hpp"

namespace stepladder::matmul {

inline dnnl::memory::desc onednn_matrix(std::int64_t rows, std::int64_t columns, bool transposed) {
  using Dims = dnnl::memory::dims;
  return {Dims{rows, columns}, dnnl::memory::data_type::f32,
          transposed ? Dims{1, rows} : Dims{columns, 1}};
}

template <bool prepacks>
class OneDnn final : public OneDnnProduct<Operands, prepacks> {
 public:
  OneDnn(const Problem& p, const Resources& resources)
      : OneDnnProduct<Operands, prepacks>(resources) {
    const OpenMpThreads scope(resources.threads);
    const auto bias = onednn_matrix(1, p.n, false);
    dnnl::post_ops after;
    if (p.epilogue == Epilogue::bias_relu) append_eltwise(after, dnnl::algorithm::eltwise_relu);
    dnnl::primitive_attr attributes;
    attributes.set_post_ops(after);
    this->create(onednn_matrix(p.m, p.k, p.transpose_a), onednn_matrix(p.k, p.n, p.transpose_b),
                 onednn_matrix(p.m, p.n, false), has_bias(p.epilogue) ? &bias : nullptr,
                 attributes);
  }
};

}  // namespace stepladder::matmul

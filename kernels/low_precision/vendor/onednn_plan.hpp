// The plan of onednn and onednn_prepacked: oneDNN's matmul primitive, compiled for the problem.
#pragma once

#include <string>

#include "kernels/common/cpu/extensions.hpp"
#include "kernels/common/onednn_product.hpp"
#include "kernels/low_precision/low_precision.hpp"

namespace stepladder::low_precision {

// B is transposed by its strides.
template <bool prepacks>
class OneDnn final : public OneDnnProduct<Operands, prepacks> {
 public:
  OneDnn(const Problem& p, const Resources& resources)
      : OneDnnProduct<Operands, prepacks>(resources) {
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
    const OpenMpThreads scope(resources.threads);
    this->create_or_throw(
        std::string("oneDNN has no product of ") + name_of(p.format) + " on this CPU", [&] {
          this->create({Dims{p.m, p.k}, of_a, Dims{p.k, 1}}, {Dims{p.k, p.n}, of_b, Dims{1, p.k}},
                       {Dims{p.m, p.n}, Type::f32, Dims{p.n, 1}});
        });
  }
};

}  // namespace stepladder::low_precision

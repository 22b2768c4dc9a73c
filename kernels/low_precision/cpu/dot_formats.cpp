#include "kernels/low_precision/cpu/dot_formats.hpp"

namespace stepladder::low_precision {

void require_dot_products(Format format) {
  if (!cpu_has(Isa::avx512)) throw Unsupported("this CPU has no AVX-512");
  if (format == Format::bf16) require(Extension::avx512_bf16);
  if (format == Format::int8) require(Extension::avx512_vnni);
  if (format == Format::binary) require(Extension::avx512_vpopcntdq);
}

}  // namespace stepladder::low_precision

// The xsimd architecture and batch of the ISA that this file is built for. Only files that mention
// build_isa include it; every function they share must be a template on Arch or have internal
// linkage, or the linker could give an SSE4.2 file the AVX-512 copy.
#pragma once

#include <xsimd/xsimd.hpp>

#include "kernels/common/isa.hpp"

namespace stepladder {

template <Isa isa>
struct ArchOf;
template <>
struct ArchOf<Isa::sse42> {
  using type = xsimd::sse4_2;
};
#if defined(__AVX2__)
template <>
struct ArchOf<Isa::avx2> {
  using type = xsimd::fma3<xsimd::avx2>;
};
#endif
#if defined(__AVX512F__)
template <>
struct ArchOf<Isa::avx512> {
  using type = xsimd::avx512dq;
};
#endif

using Arch = ArchOf<build_isa>::type;
using Vector = xsimd::batch<float, Arch>;  // 4, 8 or 16 floats

}  // namespace stepladder

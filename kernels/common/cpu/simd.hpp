// The xsimd architecture and vector type of the ISA that the file is compiled for.
#pragma once

#include <xsimd/xsimd.hpp>

#include "kernels/common/isa.hpp"

namespace stepladder::inline STEPLADDER_ISA {

template <Isa isa>
struct ArchOf;
template <>
struct ArchOf<Isa::any> {  // what every x86-64 has
  using type = xsimd::sse2;
};
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

// Hides from the compiler that a vector was loaded. GCC would load it again for each FMA that uses
// it, as an operand in memory, and the loads would take longer than the FMAs.
[[gnu::always_inline]] inline Vector in_register(Vector v) {
  __asm__("" : "+v"(v.data));
  return v;
}

}  // namespace stepladder::inline STEPLADDER_ISA

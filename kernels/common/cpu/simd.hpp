// The xsimd architecture and vector type of the ISA that the file is compiled for.
#pragma once

#include <xsimd/xsimd.hpp>

#include "kernels/common/isa.hpp"

namespace stepladder::inline STEPLADDER_ISA {

template <Isa isa>
struct ArchOf;
#if defined(__aarch64__)
template <>
struct ArchOf<Isa::any> {
  using type = xsimd::neon64;
};
template <>
struct ArchOf<Isa::neon> {
  using type = xsimd::neon64;
};
#else
template <>
struct ArchOf<Isa::any> {  // what every x86-64 has
  using type = xsimd::sse2;
};
template <>
struct ArchOf<Isa::sse42> {
  using type = xsimd::sse4_2;
};
#endif
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

// Of the instruction set: they bound the sums that a tile keeps.
#if defined(__AVX512F__) || defined(__aarch64__)
inline constexpr int vector_registers = 32;
#else
inline constexpr int vector_registers = 16;
#endif

// Hides from the compiler that a vector was loaded. GCC would load it again for each FMA that uses
// it, as an operand in memory, and the loads would take longer than the FMAs.
[[gnu::always_inline]] inline Vector in_register(Vector v) {
#if defined(__aarch64__)
  __asm__("" : "+w"(v.data));
#else
  __asm__("" : "+v"(v.data));
#endif
  return v;
}

}  // namespace stepladder::inline STEPLADDER_ISA

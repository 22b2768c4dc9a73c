// The instruction sets. A variant with `.isa = build_isa` is compiled once per ISA, with its flags
// and STEPLADDER_ISA set to its name; every other file is compiled once, for the baseline.
//
// Headers of such variants put their code into the inline namespace STEPLADDER_ISA, so that each
// build has its own symbols and the linker can never mix them:
//
//     namespace stepladder::matmul::inline STEPLADDER_ISA { ... }   // stepladder::matmul::avx2
#pragma once

namespace stepladder {

enum class Isa { any, neon, sse42, avx2, avx512 };  // narrowest first; neon on AArch64 alone

const char* name_of(Isa isa);

// Whether this CPU executes it. avx2 includes FMA, and F16C, which no CPU with AVX2 lacks; avx512
// is F, BW, DQ and VL.
bool cpu_has(Isa isa);

}  // namespace stepladder

#ifndef STEPLADDER_ISA
#define STEPLADDER_ISA any
#endif

namespace stepladder::inline STEPLADDER_ISA {
inline constexpr Isa build_isa = Isa::STEPLADDER_ISA;
}

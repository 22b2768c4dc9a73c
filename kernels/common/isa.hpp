// The instruction sets that files are built for. A file that mentions build_isa is compiled once per
// ISA, with the matching flags and STEPLADDER_BUILD_ISA set; any other file is compiled once, for
// the baseline.
#pragma once

namespace stepladder {

enum class Isa { any, sse42, avx2, avx512 };  // narrowest first

#ifdef STEPLADDER_BUILD_ISA
inline constexpr Isa build_isa = Isa::STEPLADDER_BUILD_ISA;
#endif

const char* name_of(Isa isa);
bool cpu_has(
    Isa isa);  // whether this machine executes it (avx2 includes FMA; avx512 is F, BW, DQ, VL)

}  // namespace stepladder

// Instructions for narrow operands, which some CPUs with AVX-512 have and others lack.
#pragma once

namespace stepladder {

enum class Extension { avx512_bf16, avx512_vnni, avx512_vpopcntdq, amx_bf16, amx_int8 };

const char* name_of(Extension extension);  // as Intel's manual has it: "AVX512_BF16"

// Whether this CPU executes it. AMX: and whether Linux (5.16 or newer) lets this process use the
// tile registers, which the first call asks for.
bool cpu_has(Extension extension);

// Throw Unsupported, or NotHere for rungs of this instruction set alone, unless cpu_has() it.
void require(Extension extension);
void require_here(Extension extension);

}  // namespace stepladder

#include "kernels/common/isa.hpp"

namespace stepladder {

const char* name_of(Isa isa) {
  switch (isa) {
    case Isa::any:
      return "any";
    case Isa::neon:
      return "neon";
    case Isa::sse42:
      return "sse42";
    case Isa::avx2:
      return "avx2";
    case Isa::avx512:
      return "avx512";
  }
  return "";
}

bool cpu_has(Isa isa) {
  switch (isa) {
    case Isa::any:
      return true;
#if defined(__aarch64__)
    case Isa::neon:
      return true;
    default:
      return false;
#else
    case Isa::neon:
      return false;
    case Isa::sse42:
      return __builtin_cpu_supports("sse4.2") != 0;
    case Isa::avx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case Isa::avx512:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512cd") &&
             __builtin_cpu_supports("avx512vl");
#endif
  }
  return false;
}

}  // namespace stepladder

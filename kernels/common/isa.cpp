#include "kernels/common/isa.hpp"

#include <cstddef>
#include <iterator>

namespace stepladder {

const char* name_of(Isa isa) {
  constexpr const char* names[] = {"any", "neon", "sse42", "avx2", "avx512"};
  static_assert(std::size(names) == static_cast<std::size_t>(Isa::avx512) + 1);
  return names[static_cast<std::size_t>(isa)];
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

#include "kernels/common/cpu/extensions.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "kernels/common/variant.hpp"

namespace stepladder {

#if defined(__x86_64__)
namespace {

bool may_use_tiles() {
  constexpr long request_permission = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM
  static const bool may = syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
  return may;
}

// Bits of leaf 7, subleaf 0.
bool has_amx(unsigned bit) {
  constexpr unsigned amx_tile = 1U << 24;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & amx_tile) != 0 && (d & bit) != 0 &&
         may_use_tiles();
}

}  // namespace

bool cpu_has(Extension extension) {
  switch (extension) {
    case Extension::avx512_bf16:
      return cpu_has(Isa::avx512) && __builtin_cpu_supports("avx512bf16") != 0;
    case Extension::avx512_vnni:
      return cpu_has(Isa::avx512) && __builtin_cpu_supports("avx512vnni") != 0;
    case Extension::avx512_vpopcntdq:
      return cpu_has(Isa::avx512) && __builtin_cpu_supports("avx512vpopcntdq") != 0;
    case Extension::amx_bf16:
      return has_amx(1U << 22);
    case Extension::amx_int8:
      return has_amx(1U << 25);
  }
  return false;
}
#else
bool cpu_has(Extension) { return false; }
#endif

const char* name_of(Extension extension) {
  switch (extension) {
    case Extension::avx512_bf16:
      return "AVX512_BF16";
    case Extension::avx512_vnni:
      return "AVX512_VNNI";
    case Extension::avx512_vpopcntdq:
      return "AVX512_VPOPCNTDQ";
    case Extension::amx_bf16:
      return "AMX-BF16";
    case Extension::amx_int8:
      return "AMX-INT8";
  }
  return "";
}

void require(Extension extension) {
  if (!cpu_has(extension)) throw Unsupported(std::string("this CPU has no ") + name_of(extension));
}

void require_here(Extension extension) {
  if (!cpu_has(extension)) throw NotHere(std::string("this CPU has no ") + name_of(extension));
}

}  // namespace stepladder

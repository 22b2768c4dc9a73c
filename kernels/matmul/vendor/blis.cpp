// BLIS, the reference for the five loops around the micro-kernel.
//
// On CPUs that it does not recognise, Debian's BLIS 0.9 uses AVX2 kernels (Intel) or plain C (AMD).
// If the CPU has AVX-512 and the user has not set BLIS_ARCH_TYPE, it is set before the library
// initialises: to skx on Intel, to zen3 on AMD, where BLIS 0.9 has no wider kernels (and Zen 4 does
// as many FLOPs per cycle with AVX2 as with AVX-512).
#include <cstdlib>
#include <string>
#include <string_view>

#include "kernels/matmul/vendor/blas_library.hpp"

namespace stepladder::matmul {
namespace {

void choose_kernels([[maybe_unused]] const BlasLibrary& library) {
#if defined(__x86_64__)
  if (!cpu_has(Isa::avx512) || std::getenv("BLIS_ARCH_TYPE") != nullptr) return;
  const std::string_view wanted = __builtin_cpu_is("intel") ? "skx"
                                  : __builtin_cpu_is("amd") ? "zen3"
                                                            : "";
  // The numbers of the names differ between versions; the list ends with "generic".
  const char* (*name_of_arch)(int) = library["bli_arch_string"];
  for (int arch = 0; arch < 64; ++arch) {
    const char* name = name_of_arch(arch);
    if (name == nullptr || std::string_view(name) == "generic") return;
    if (name == wanted) {
      setenv("BLIS_ARCH_TYPE", std::to_string(arch).c_str(), 0);
      return;
    }
  }
#endif
}

class Blis final : public BlasPlan {
 public:
  Blis(const Problem& problem, const Resources& resources)
      : BlasPlan(problem, resources,
                 {{"libblis.so.4", "/usr/lib/x86_64-linux-gnu/blis-openmp/libblis.so.4",
                   "/usr/lib/x86_64-linux-gnu/blis-pthread/libblis.so.4"},
                  "Debian: libblis4-openmp"}) {
    choose_kernels(library_);
  }

  std::string remark() const override {
    const char* (*version)() = library_["bli_info_get_version_str"];
    int (*arch)() = library_["bli_arch_query_id"];
    const char* (*name_of_arch)(int) = library_["bli_arch_string"];
    return std::string("BLIS ") + version() + " " + name_of_arch(arch());
  }
};

constexpr VariantInfo info{
    .name = "blis",
    .technique = Technique::vendor,
    .adds = "cblas_sgemm of BLIS",
    .threaded = true,
    .epilogue = true,
};

const Registration registration{info, make_plan<Matmul, Blis>};

}  // namespace
}  // namespace stepladder::matmul

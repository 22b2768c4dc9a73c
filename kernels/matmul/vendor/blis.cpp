// BLIS, the library that gave the loops around the register tile their modern form.
//
// Debian's BLIS 0.9 falls back to AVX2 kernels on an Intel machine that it does not know by name,
// and to plain C ones on such an AMD machine. So where there is AVX-512 and the user has not chosen
// BLIS_ARCH_TYPE, it is set before the library starts: to skx on Intel; to zen3 on AMD, where BLIS
// 0.9 has no wider kernels (and Zen 4 does as many FLOPs per cycle with AVX2 as with AVX-512).
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "kernels/matmul/vendor/blas_library.hpp"
#include "kernels/matmul/cpu/separate_epilogue.hpp"

namespace stepladder::matmul {
namespace {

void choose_kernels(const BlasLibrary& library) {
  if (!cpu_has(Isa::avx512) || std::getenv("BLIS_ARCH_TYPE") != nullptr) return;
  const std::string_view wanted = __builtin_cpu_is("intel") ? "skx"
                                  : __builtin_cpu_is("amd") ? "zen3"
                                                            : "";
  // The number that stands for a name differs between versions; the list ends with "generic".
  const char* (*name_of_arch)(int) = library["bli_arch_string"];
  for (int arch = 0; arch < 64; ++arch) {
    const char* name = name_of_arch(arch);
    if (name == nullptr || std::string_view(name) == "generic") return;
    if (name == wanted) {
      setenv("BLIS_ARCH_TYPE", std::to_string(arch).c_str(), 0);
      return;
    }
  }
}

class Blis final : public Plan {
 public:
  Blis(const Problem& problem, const Resources& resources)
      : problem_(problem), threads_(resources.threads) {
    require_blas_sizes(problem);
    choose_kernels(library_);
  }

  void run(const Operands& operands) override {
    set_threads_(threads_);  // plans with other numbers of threads may have run in between
    library_.multiply(problem_, operands);
    separate_epilogue(problem_, operands, threads_);
  }

 private:
  Problem problem_;
  int threads_;
  BlasLibrary library_{{"libblis.so.4", "/usr/lib/x86_64-linux-gnu/blis-openmp/libblis.so.4",
                        "/usr/lib/x86_64-linux-gnu/blis-pthread/libblis.so.4"},
                       "Debian: libblis4-openmp"};
  void (*set_threads_)(std::int64_t) = library_["bli_thread_set_num_threads"];
};

constexpr VariantInfo info{
    .name = "blis",
    .technique = Technique::vendor,
    .adds = "BLIS' cblas_sgemm",
    .threaded = true,
    .epilogue = true,
};

const Registration registration{info, make_plan<Matmul, Blis>};

}  // namespace
}  // namespace stepladder::matmul

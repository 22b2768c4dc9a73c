// OpenBLAS, which most builds of numpy on Debian use. Its hand-written kernels have the same
// structure as `packed`: that of Goto and van de Geijn.
#include "kernels/matmul/cpu/separate_epilogue.hpp"
#include "kernels/matmul/vendor/blas_library.hpp"

namespace stepladder::matmul {
namespace {

class OpenBlas final : public Plan {
 public:
  OpenBlas(const Problem& problem, const Resources& resources)
      : problem_(problem), threads_(resources.threads) {
    require_blas_sizes(problem);
  }

  void run(const Operands& operands) override {
    set_threads_(threads_);  // another plan may have set a different number
    library_.multiply(problem_, operands);
    separate_epilogue(problem_, operands, threads_);
  }

 private:
  Problem problem_;
  int threads_;
  BlasLibrary library_{
      {"libopenblas.so.0", "/usr/lib/x86_64-linux-gnu/openblas-openmp/libopenblas.so.0",
       "/usr/lib/x86_64-linux-gnu/openblas-pthread/libopenblas.so.0"},
      "Debian: libopenblas0-openmp"};
  void (*set_threads_)(int) = library_["openblas_set_num_threads"];
};

constexpr VariantInfo info{
    .name = "openblas",
    .technique = Technique::vendor,
    .adds = "cblas_sgemm of OpenBLAS",
    .threaded = true,
    .epilogue = true,
};

const Registration registration{info, make_plan<Matmul, OpenBlas>};

}  // namespace
}  // namespace stepladder::matmul

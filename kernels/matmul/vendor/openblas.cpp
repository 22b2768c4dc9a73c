// OpenBLAS, which most builds of numpy on Debian use. Its hand-written kernels have the same
// structure as `packed`: that of Goto and van de Geijn.
#include "kernels/common/openblas.hpp"

#include "kernels/matmul/vendor/blas_library.hpp"

namespace stepladder::matmul {
namespace {

BlasLibrary open_openblas() {
  choose_openblas_kernels();
  return {{"libopenblas.so.0", "/usr/lib/x86_64-linux-gnu/openblas-openmp/libopenblas.so.0",
           "/usr/lib/x86_64-linux-gnu/openblas-pthread/libopenblas.so.0"},
          "Debian: libopenblas0-openmp"};
}

class OpenBlas final : public BlasPlan {
 public:
  OpenBlas(const Problem& problem, const Resources& resources)
      : BlasPlan(problem, resources, open_openblas()) {}

  std::string remark() const override {
    const char* (*config)() = library_["openblas_get_config"];  // "OpenBLAS 0.3.21 NO_LAPACKE …"
    const char* (*core)() = library_["openblas_get_corename"];
    const std::string text = config();
    return text.substr(0, text.find(' ', text.find(' ') + 1)) + " " + core();
  }
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

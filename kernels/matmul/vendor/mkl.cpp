// Intel MKL. It is set to use GNU OpenMP, which this program already uses: two OpenMP runtimes in
// one process would compete for the cores.
#include "kernels/matmul/vendor/blas_library.hpp"

namespace stepladder::matmul {
namespace {

class Mkl final : public BlasPlan {
 public:
  Mkl(const Problem& problem, const Resources& resources)
      : BlasPlan(problem, resources,
                 {{"libmkl_rt.so.3", "libmkl_rt.so.2", "libmkl_rt.so"},
                  "PyPI: mkl, which make bench installs; Debian non-free: intel-mkl"}) {
    constexpr int gnu = 3;  // MKL_THREADING_GNU
    int (*set_threading_layer)(int) = library_["MKL_Set_Threading_Layer"];
    set_threading_layer(gnu);
  }

  std::string remark() const override {
    struct Version {
      int major, minor, update;
      const char *status, *build, *processor, *platform;
    } version{};
    void (*get)(Version*) = library_["MKL_Get_Version"];
    get(&version);
    return "MKL " + std::to_string(version.major) + "." + std::to_string(version.minor) + "." +
           std::to_string(version.update);
  }
};

constexpr VariantInfo info{
    .name = "mkl",
    .technique = Technique::vendor,
    .adds = "cblas_sgemm of MKL",
    .threaded = true,
    .epilogue = true,
};

const Registration registration{info, make_plan<Matmul, Mkl>};

}  // namespace
}  // namespace stepladder::matmul

// CLBlast, the BLAS of OpenCL. Its parameters are tuned per device; on one that its table does not
// have, those of the nearest kind of device are used.
#include <clblast_c.h>

#include "kernels/common/opencl/plan.hpp"
#include "kernels/common/shared_library.hpp"
#include "kernels/matmul/matmul.hpp"

namespace stepladder::matmul {
namespace {

using Sgemm = decltype(&::CLBlastSgemm);

Sgemm sgemm() {
  try {
    static const SharedLibrary library("libclblast.so.1");
    return library["CLBlastSgemm"];
  } catch (const NotHere&) {
    throw NotHere("libclblast.so.1 not found (Debian: libclblast1)");
  }
}

class ClBlast final : public Plan {
 public:
  ClBlast(const Problem& p, const Resources& resources)
      : p_(p),
        session_(opencl::session(resources.threads)),
        sgemm_(sgemm()),
        a_(session_, opencl::float_bytes(p.m * p.k), opencl::Access::read),
        b_(session_, opencl::float_bytes(p.k * p.n), opencl::Access::read),
        c_(session_, opencl::float_bytes(p.m * p.n), opencl::Access::write) {}

  void run(const Operands& o) override {
    const auto operation = [](bool transpose) {
      return transpose ? CLBlastTransposeYes : CLBlastTransposeNo;
    };
    const auto m = static_cast<std::size_t>(p_.m), n = static_cast<std::size_t>(p_.n),
               k = static_cast<std::size_t>(p_.k);
    cl_command_queue queue = session_.queue;
    const CLBlastStatusCode status =
        sgemm_(CLBlastLayoutRowMajor, operation(p_.transpose_a), operation(p_.transpose_b), m, n, k,
               1.0F, a_.before_kernels(o.a), 0, p_.transpose_a ? m : k, b_.before_kernels(o.b), 0,
               p_.transpose_b ? k : n, 0.0F, c_.before_kernels(o.c), 0, n, &queue, nullptr);
    if (status != CLBlastSuccess)
      throw std::runtime_error("CLBlastSgemm: status " + std::to_string(status));
    c_.after_kernels(o.c);
    opencl::finish(session_);
  }

 private:
  Problem p_;
  const opencl::Session& session_;
  Sgemm sgemm_;
  opencl::Operand a_, b_, c_;
};

constexpr VariantInfo info{
    .name = "clblast",
    .technique = Technique::vendor,
    .adds = "CLBlastSgemm of CLBlast",
    .place = Place::opencl,
    .threaded = true,
};

const Registration registration{info, make_plan<Matmul, ClBlast>};

}  // namespace
}  // namespace stepladder::matmul

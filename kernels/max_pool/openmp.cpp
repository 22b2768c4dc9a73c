// simd on every core: planes are independent, and each thread takes a stretch of them. Pays where one
// core cannot draw the machine's full memory bandwidth. A small problem is left to one thread: waking
// the others would cost more.
#include "kernels/max_pool/simd_pooling.hpp"

namespace stepladder::max_pool {
namespace {

class OpenMp final : public Plan {
 public:
  OpenMp(const Problem& p, const Resources& resources)
      : planes_(p.planes()), parts_(threads_worth(p, resources.threads)), pooling_(p, parts_) {}

  void run(const Operands& o) override {
    if (parts_ == 1) return pooling_.run(o, 0, planes_, 0);
#pragma omp parallel for num_threads(parts_) schedule(static, 1)
    for (int part = 0; part < parts_; ++part)
      pooling_.run(o, planes_ * part / parts_, planes_ * (part + 1) / parts_, part);
  }

 private:
  std::int64_t planes_;
  int parts_;
  SimdPooling<build_isa> pooling_;
};

constexpr VariantInfo info{
    .name = "openmp",
    .technique = Technique::openmp,
    .builds_on = "simd",
    .adds = "a stretch of planes for each thread",
    .isa = build_isa,
    .threaded = true,
};

const Registration registration{info, make_plan<MaxPool, OpenMp>};

}  // namespace
}  // namespace stepladder::max_pool

// simd on every core: planes are independent, and each thread has a contiguous range of them.
// Out of cache it gains only if one core cannot use the machine's full memory bandwidth. Small
// problems run on one thread, because waking the others would cost more.
#include <algorithm>

#include "kernels/average_pool/cpu/simd/pooling.hpp"

namespace stepladder::average_pool {
namespace {

class OpenMp final : public Plan {
 public:
  OpenMp(const Problem& p, const Resources& resources)
      : planes_(p.planes()),
        shares_(static_cast<int>(std::clamp<std::int64_t>(
            std::min(p.planes(), p.x_count() / min_elements_per_thread), 1, resources.threads))),
        pooling_(p, shares_) {}

  void run(const Operands& o) override {
    if (shares_ == 1) return pooling_.run(o, 0, planes_, 0);
#pragma omp parallel for num_threads(shares_) schedule(static, 1)
    for (int share = 0; share < shares_; ++share)
      pooling_.run(o, planes_ * share / shares_, planes_ * (share + 1) / shares_, share);
  }

 private:
  static constexpr std::int64_t min_elements_per_thread = 16384;  // of x: some microseconds

  std::int64_t planes_;
  int shares_;
  SimdPooling pooling_;
};

constexpr VariantInfo info{
    .name = "openmp",
    .technique = Technique::openmp,
    .builds_on = "simd",
    .adds = "a contiguous range of planes for each thread",
    .isa = build_isa,
    .threaded = true,
};

const Registration registration{info, make_plan<AveragePool, OpenMp>};

}  // namespace
}  // namespace stepladder::average_pool

// A contiguous range of planes for each OpenMP thread. Small problems run on one thread, because
// waking the others would cost more.
#pragma once

#include <algorithm>

#include "kernels/max_pool/cpu/simd/pooling.hpp"

namespace stepladder::max_pool::inline STEPLADDER_ISA {

template <bool streaming>
class OpenMpPooling final : public Plan {
 public:
  OpenMpPooling(const Problem& p, const Resources& resources)
      : planes_(p.planes()),
        shares_(static_cast<int>(std::clamp<std::int64_t>(
            std::min(p.planes(), p.x_count() / min_elements_per_thread), 1, resources.threads))),
        pooling_(p, shares_, streaming) {}

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

}  // namespace stepladder::max_pool::inline STEPLADDER_ISA

// A stretch of planes for each OpenMP thread. A small problem is left to one: waking the others would
// cost more.
#pragma once

#include <algorithm>

#include "kernels/max_pool/cpu/simd/pooling.hpp"

namespace stepladder::max_pool::inline STEPLADDER_ISA {

template <bool streaming>
class OpenMpPooling final : public Plan {
 public:
  OpenMpPooling(const Problem& p, const Resources& resources)
      : planes_(p.planes()),
        parts_(static_cast<int>(std::clamp<std::int64_t>(
            std::min(p.planes(), p.x_count() / worth_a_thread), 1, resources.threads))),
        pooling_(p, parts_, streaming) {}

  void run(const Operands& o) override {
    if (parts_ == 1) return pooling_.run(o, 0, planes_, 0);
#pragma omp parallel for num_threads(parts_) schedule(static, 1)
    for (int part = 0; part < parts_; ++part)
      pooling_.run(o, planes_ * part / parts_, planes_ * (part + 1) / parts_, part);
  }

 private:
  static constexpr std::int64_t worth_a_thread =
      16384;  // elements of x: a few microseconds of work

  std::int64_t planes_;
  int parts_;
  SimdPooling pooling_;
};

}  // namespace stepladder::max_pool::inline STEPLADDER_ISA

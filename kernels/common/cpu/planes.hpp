// The planes of a pooling layer, and how threads divide them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/common/cpu/partition.hpp"
#include "kernels/common/cpu/parts.hpp"
#include "kernels/common/variant.hpp"

namespace stepladder::inline STEPLADDER_ISA {

// The rows or columns inside the plane of a window that starts at `start`, which may be negative;
// relative to the start.
inline Range inside(std::int64_t start, std::int64_t window, std::int64_t plane) {
  return {std::max<std::int64_t>(0, -start), std::min(window, plane - start)};
}

// A square window with stride 2 and this padding all around.
template <class Problem>
bool has_stride_2(const Problem& p, std::int64_t window, std::int64_t pad) {
  return p.window_h == window && p.window_w == window && p.stride_h == 2 && p.stride_w == 2 &&
         p.pad_h == pad && p.pad_w == pad;
}

// The threads that the planes of x pay for: each gets some microseconds of work.
inline int plane_threads(std::int64_t planes, std::int64_t x_count, int threads) {
  return parts_that_pay(planes, x_count, 16384, threads);
}

// A contiguous range of planes for each thread. Pooling: the SimdPooling of a primitive,
// constructed from (problem, threads, options).
template <class Primitive, class Pooling, bool threaded, auto... options>
class PlanesPlan final : public PlanOf<Primitive> {
 public:
  PlanesPlan(const typename Primitive::Problem& p, const Resources& resources)
      : planes_(p.planes()),
        threads_(threaded ? plane_threads(planes_, p.x_count(), resources.threads) : 1),
        pooling_(p, threads_, options...) {}

  void run(const typename Primitive::Operands& o) override {
    for_each_part(planes_, threads_, [&](const Range& planes, int thread) {
      pooling_.run(o, planes.begin, planes.end, thread);
    });
  }

 private:
  std::int64_t planes_;
  int threads_;
  Pooling pooling_;
};

}  // namespace stepladder::inline STEPLADDER_ISA

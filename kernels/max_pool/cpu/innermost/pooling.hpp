// Max pooling where a plane is not innermost (kernels/common/cpu/innermost_pooling.hpp).
//
//   forward    best = max(best, x of the position), for the positions inside the plane
//   backward   dx of the position += argmax is the position ? dy : 0
#pragma once

#include <algorithm>

#include "kernels/common/cpu/innermost_pooling.hpp"
#include "kernels/max_pool/cpu/simd/argmax.hpp"
#include "kernels/max_pool/max_pool.hpp"

namespace stepladder::max_pool::inline STEPLADDER_ISA {

struct LargestOfWindow {
  struct Running {
    Vector best, position;
  };
  struct Gradient {
    Vector dy, argmax;
  };
  LargestOfWindow(const Problem&, const PoolingWindow&) {}

  static Running start(const Vector& x, const Vector& position) { return {x, position}; }
  static void add(Running& running, const Vector& x, const Vector& position) {
    running.position = xsimd::select(x > running.best, position, running.position);
    running.best = xsimd::max(x, running.best);
  }
  static void store(const Operands& o, std::int64_t result, const Running& running,
                    std::int64_t count) {
    store_first(o.y + result, running.best, count);
    store_argmax_within(o.argmax + result, running.position, count);
  }

  static Gradient gradient(const Operands& o, std::int64_t result, std::int64_t count) {
    std::uint8_t argmax[Vector::size] = {};
    std::copy_n(o.argmax + result, count, argmax);
    return {load_first(o.y + result, count), load_argmax(argmax, static_cast<Vector*>(nullptr))};
  }
  static Vector part(const Gradient& gradient, const Vector& position) {
    return where(gradient.argmax == position, gradient.dy);
  }
};

using InnermostPooling = InnermostPlan<MaxPool, LargestOfWindow>;

}  // namespace stepladder::max_pool::inline STEPLADDER_ISA

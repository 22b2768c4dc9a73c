// One float with the interface of xsimd::batch<float>, so that a template has the same loops with
// vectors and without them.
#pragma once

#include <cstddef>

#include "kernels/common/isa.hpp"

namespace stepladder::inline STEPLADDER_ISA {

struct Scalar {
  static constexpr std::size_t size = 1;
  float value;

  Scalar() = default;
  explicit Scalar(float x) : value(x) {}
  static Scalar load_unaligned(const float* p) { return Scalar(*p); }
  static Scalar load_aligned(const float* p) { return Scalar(*p); }
  void store_unaligned(float* p) const { *p = value; }
  void store_aligned(float* p) const { *p = value; }

  friend Scalar operator+(Scalar a, Scalar b) { return Scalar(a.value + b.value); }
  friend Scalar operator*(Scalar a, Scalar b) { return Scalar(a.value * b.value); }
  friend Scalar fma(Scalar a, Scalar b, Scalar c) { return Scalar(a.value * b.value + c.value); }
};

}  // namespace stepladder::inline STEPLADDER_ISA

// The adaptive rules without square roots and divisions: estimate instructions, with one Newton step
// each.
//
//   r ≈ 1 / √s                    1 / (√s + ε) ≈ r (3 − r (s r + 2 ε)) / 2    where √s >= 2^12 ε
//   a = s r, √s = a (3 − a r) / 2, d = 2 (√s + ε), y ≈ 1 / d, 1 / d = y (2 − d y)    elsewhere
//
// A step makes an error of 3/2 δ² (root) or δ² (reciprocal) from an estimate's relative error δ, 2^-14
// in AVX-512 and 1.5 · 2^-12 in AVX2 [47]; the first form leaves out (ε / √s)² + 2 δ ε / √s as well. The
// README adds up these errors and all roundings: they are within the bound of the primitive.
#pragma once

#include <immintrin.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/common/cpu/simd.hpp"
#include "kernels/sgd_update/rules.hpp"

namespace stepladder::sgd_update::inline STEPLADDER_ISA {

#if defined(__AVX512F__)
inline Vector estimate_reciprocal(const Vector& x) { return _mm512_rcp14_ps(x); }
inline Vector estimate_reciprocal_root(const Vector& x) { return _mm512_rsqrt14_ps(x); }
#elif defined(__AVX2__)
inline Vector estimate_reciprocal(const Vector& x) { return _mm256_rcp_ps(x); }
inline Vector estimate_reciprocal_root(const Vector& x) { return _mm256_rsqrt_ps(x); }
#else  // a step more: without FMA the 12 bits of AVX2 would leave the bound
inline Vector estimate_reciprocal(const Vector& x) {
  const Vector y = _mm_rcp_ps(x);
  return y * (Vector(2.0F) - x * y);
}
inline Vector estimate_reciprocal_root(const Vector& x) {
  const Vector r = _mm_rsqrt_ps(x);
  return Vector(0.5F) * r * (Vector(3.0F) - x * r * r);
}
#endif

// Why this build does not use estimates for the problem; null if it does.
inline const char* why_no_estimates(const Problem& p) {
  // Below, the error in the root of a denormal number would count.
  if (!(p.epsilon >= 0x1p-40F && p.epsilon <= 1)) return "epsilon must be from 2^-40 to 1";
  if (p.optimizer == Optimizer::adam && !(p.epsilon * std::sqrt(1 - p.beta2) >= 0x1p-40F))
    return "epsilon * sqrt(1 - beta2) must be 2^-40 or more";
  return nullptr;
}

class Estimates : public Constants<Vector> {
 public:
  Estimates(const Problem& p, const Operands& o)
      : Constants(p, o),
        half_rate_(learning_rate * Vector(0.5F)),
        twice_epsilon_(epsilon + epsilon),
        least_square_(0x1p24F * epsilon.get(0) * epsilon.get(0)) {}

  Vector step(const Vector& direction, const Vector& square) const {
    const Vector r = estimate_reciprocal_root(square);
    const Vector quotient =
        half_rate_ * direction * r * (Vector(3.0F) - r * (square * r + twice_epsilon_));
    if (!any_outside(square, least_square_)) [[likely]]
      return quotient;
    // Lane by lane: the change of a weight must not depend on its neighbours.
    return select(is_within(square, least_square_), quotient,
                  step_of_any_square(direction, square));
  }

  // x / √(x y); x and y are at least ε.
  Vector root_of_quotient(const Vector& x, const Vector& y) const {
    const Vector product = x * y;
    const Vector r = estimate_reciprocal_root(product);
    const Vector root = Vector(0.5F) * x * r * (Vector(3.0F) - product * r * r);
    if (!any_outside(product, 0)) [[likely]]
      return root;
    return select(is_within(product, 0), root, Constants::root_of_quotient(x, y));
  }

 private:
  static constexpr float largest = std::numeric_limits<float>::max();

  // The estimate for 0 is infinite, and 0 · ∞ = NaN. With the estimate for the smallest normal
  // number the root of 0 is 0, and that of a denormal number is wrong by less than 2^-64 <= ε u.
  Vector step_of_any_square(const Vector& direction, const Vector& square) const {
    const Vector r = estimate_reciprocal_root(max(square, Vector(0x1p-126F)));
    const Vector a = square * r;
    const Vector d = a * (Vector(3.0F) - a * r) + twice_epsilon_;
    const Vector y = estimate_reciprocal(d);
    const Vector quotient = Vector(4.0F) * half_rate_ * direction * y * (Vector(2.0F) - d * y);
    if (!any_outside(square, 0)) [[likely]]
      return quotient;
    return select(is_within(square, 0), quotient, Constants::step(direction, square));
  }

  // Values outside [0, largest] make a NaN of every Newton step: their lanes follow the plain rule.
  static Vector::batch_bool_type is_within(const Vector& x, float least) {
    return x >= Vector(least) && x <= Vector(largest);
  }
  // One addition and one comparison: as integers, the bits of floats from 0 to infinity are in the
  // order of the floats. Subtracting those of `least`, modulo 2^32, makes `least` the smallest
  // integer. All values outside are then above `largest`: smaller, infinite and negative numbers, NaN.
  static bool any_outside(const Vector& x, float least) {
    using Bits = xsimd::batch<std::int32_t, Arch>;
    constexpr std::uint32_t smallest_integer = 0x80000000U;
    const auto moved = [least](std::uint32_t bits) {
      return static_cast<std::int32_t>(bits - std::bit_cast<std::uint32_t>(least) +
                                       smallest_integer);
    };
    return xsimd::any(xsimd::bitwise_cast<Bits>(x) + Bits(moved(0)) >
                      Bits(moved(std::bit_cast<std::uint32_t>(largest))));
  }

  Vector half_rate_, twice_epsilon_;
  float least_square_;  // of the first form
};

}  // namespace stepladder::sgd_update::inline STEPLADDER_ISA

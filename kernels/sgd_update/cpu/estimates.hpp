// The adaptive rules with an estimate instruction and a Newton step in place of each square root:
// the divider has one operation per vector, and the multipliers compute the root beside it.
//
//   r ≈ 1 / √s    a = s r              √s = a (3 − a r) / 2
//
// A step makes an error of 3/2 δ² from the estimate's relative error δ. In AVX-512 δ = 2^-14 and
// the step is as good as exact; in AVX2 δ = 1.5 · 2^-12 [47], and it adds 3.4 roundings. The README
// adds up all roundings: they are within the bound of the primitive.
#pragma once

#include <cmath>

#include "kernels/common/cpu/instructions.hpp"
#include "kernels/common/cpu/simd.hpp"
#include "kernels/sgd_update/rules.hpp"

namespace stepladder::sgd_update::inline STEPLADDER_ISA {

#if defined(__AVX512F__)
inline Vector estimate_reciprocal_root(const Vector& x) { return _mm512_rsqrt14_ps(x); }
#elif defined(__AVX2__)
inline Vector estimate_reciprocal_root(const Vector& x) { return _mm256_rsqrt_ps(x); }
#elif defined(__aarch64__)  // a step more: its estimate has 8 bits, and then 15
inline Vector estimate_reciprocal_root(const Vector& x) {
  const float32x4_t r = vrsqrteq_f32(x);
  return vmulq_f32(r, vrsqrtsq_f32(vmulq_f32(x, r), r));
}
#else                       // a step more: without FMA the 12 bits of AVX2 would leave the bound
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

// Newton's step makes NaN of the root of a negative or infinite number: such lanes follow the plain
// rule.
class Estimates : public Constants<Vector> {
 public:
  Estimates(const Problem& p, const Operands& o)
      : Constants(p, o),
        twice_rate_(learning_rate + learning_rate),
        twice_epsilon_(epsilon + epsilon) {}

  // The estimate for 0 is infinite, and 0 · ∞ = NaN. With the smallest normal number added, the
  // root of 0 is 0, the root of a denormal number is wrong by less than 2^-65 <= ε u, and from
  // 2^-100 on nothing changes.
  Vector step(const Vector& direction, const Vector& square) const {
    const Vector r = estimate_reciprocal_root(square + Vector(0x1p-126F));
    const Vector a = square * r;
    const Vector twice_root = a * (Vector(3.0F) - a * r);
    const Vector quotient = twice_rate_ * direction / (twice_root + twice_epsilon_);
    const auto irregular = xsimd::isnan(quotient);
    if (!xsimd::any(irregular)) [[likely]]
      return quotient;
    return select(irregular, Constants::step(direction, square), quotient);
  }

  // x / √(x y); x and y are at least ε.
  Vector root_of_quotient(const Vector& x, const Vector& y) const {
    const Vector product = x * y;
    const Vector r = estimate_reciprocal_root(product);
    const Vector root = Vector(0.5F) * x * r * (Vector(3.0F) - product * r * r);
    const auto irregular = xsimd::isnan(root);
    if (!xsimd::any(irregular)) [[likely]]
      return root;
    return select(irregular, Constants::root_of_quotient(x, y), root);
  }

 private:
  Vector twice_rate_, twice_epsilon_;
};

}  // namespace stepladder::sgd_update::inline STEPLADDER_ISA

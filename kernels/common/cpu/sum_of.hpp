// The sum of the elements of a vector: xsimd renamed hadd to reduce_add in version 9.
#pragma once

#include "kernels/common/cpu/scalar.hpp"
#include "kernels/common/cpu/simd.hpp"

namespace stepladder::inline STEPLADDER_ISA {

inline float sum_of(Scalar v) { return v.value; }

template <class T, class A>
T sum_of(const xsimd::batch<T, A>& v) {
  if constexpr (requires { reduce_add(v); })
    return reduce_add(v);
  else
    return hadd(v);
}

}  // namespace stepladder::inline STEPLADDER_ISA

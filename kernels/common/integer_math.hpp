// Divisions that round up, on the CPU and on the GPU.
#pragma once

#include "kernels/common/host_device.hpp"
#include "kernels/common/isa.hpp"

namespace stepladder::inline STEPLADDER_ISA {

// a / b, rounded up; a >= 0, b > 0.
template <class A, class B>
STEPLADDER_HOST_DEVICE constexpr auto ceil_div(A a, B b) {
  return (a + b - 1) / b;
}

// The smallest multiple of b that is not below a; a >= 0, b > 0.
template <class A, class B>
STEPLADDER_HOST_DEVICE constexpr auto round_up(A a, B b) {
  return ceil_div(a, b) * b;
}

}  // namespace stepladder::inline STEPLADDER_ISA

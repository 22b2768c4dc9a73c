// Division by a number that is known before the launch. A GPU takes about twenty instructions for
// an integer division; this takes a multiplication and a shift. Source: Granlund and Montgomery,
// "Division by Invariant Integers using Multiplication", PLDI 1994.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/common/host_device.hpp"
#include "kernels/common/integer_math.hpp"

namespace stepladder {

// With 2^(s−1) < d <= 2^s, multiplier = ⌈2^(31+s) / d⌉ exceeds 2^(31+s) / d by e / d, where e < d.
// The quotient of n is exact if n · e < 2^(31+s), which holds for n < 2^31.
class FastDivisor {
 public:
  FastDivisor() = default;
  explicit FastDivisor(std::uint32_t divisor)  // 1 to 2^31
      : divisor_(divisor),
        shift_(31 + static_cast<std::uint32_t>(std::bit_width(divisor - 1))),
        multiplier_(static_cast<std::uint32_t>(ceil_div(std::uint64_t{1} << shift_, divisor))) {}

  struct Parts {
    std::uint32_t quotient, remainder;
  };
  STEPLADDER_HOST_DEVICE Parts divide(std::uint32_t n) const {  // n < 2^31
    const auto quotient = static_cast<std::uint32_t>((std::uint64_t{n} * multiplier_) >> shift_);
    return {quotient, n - quotient * divisor_};
  }

 private:
  std::uint32_t divisor_ = 1, shift_ = 31, multiplier_ = std::uint32_t{1} << 31;
};

}  // namespace stepladder

// A convolution as steps of work for a team of threads.
#pragma once

#include <cstdint>

#include "kernels/convolution/convolution.hpp"

namespace stepladder::convolution {

// Every thread of the team calls step(0, …), then every thread step(1, …): no thread may begin a
// step before all have finished the one before.
class Steps {
 public:
  static constexpr int count = 2;
  virtual ~Steps() = default;
  virtual void step(int step, int thread, const Operands& operands) = 0;
};

// The part of `items` that falls to one of `parts`: [first, last), sizes differing by at most one.
struct Share {
  std::int64_t first, last;
  Share(std::int64_t items, std::int64_t parts, std::int64_t part)
      : first(items * part / parts), last(items * (part + 1) / parts) {}
};

}  // namespace stepladder::convolution

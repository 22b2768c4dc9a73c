// Variants that are wrong on purpose. They register themselves as any other, under a primitive of
// their own, so that nobody but the test of the checker meets them.
#pragma once

#include "kernels/all_reduce/all_reduce.hpp"

namespace stepladder::all_reduce {

struct BrokenAllReduce : AllReduce {
  static constexpr const char* name = "broken_all_reduce";
};

}  // namespace stepladder::all_reduce

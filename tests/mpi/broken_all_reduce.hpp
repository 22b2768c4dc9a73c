// Deliberately wrong variants, registered under a primitive that only the test of the checker uses.
#pragma once

#include "kernels/all_reduce/all_reduce.hpp"

namespace stepladder::all_reduce {

struct BrokenAllReduce : AllReduce {
  static constexpr const char* name = "broken_all_reduce";
};

}  // namespace stepladder::all_reduce

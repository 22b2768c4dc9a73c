// The time that a code takes in the cost model. Codes are bound by arithmetic, so they take about
// the same time per byte in the caches and beyond them, unlike an addition or a copy. The factors
// of the rungs were fitted to times of two ranks on Zen 4.
#pragma once

#include "kernels/common/links.hpp"

namespace stepladder::all_reduce {

// Seconds to round `bytes` of fp32 to bf16 in the caches, the unit of the factors.
inline double seconds_to_round(const CommunicationCost& c, double bytes) {
  return bytes * c.l.code;
}

}  // namespace stepladder::all_reduce

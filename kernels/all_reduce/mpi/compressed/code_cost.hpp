// The time that a code takes in the cost model. Codes are bound by arithmetic, so they take the
// same time per byte in the caches and beyond them, unlike an addition or a copy.
#pragma once

#include "kernels/common/links.hpp"

namespace stepladder::all_reduce {

// Seconds to add `bytes` at the speed of additions beyond the caches, the unit of the measured
// factors.
inline double long_add(const CommunicationCost& c, double bytes) {
  constexpr double beyond = 0x1p26;
  return bytes / beyond * (c.l.add(2 * beyond) - c.l.add(beyond));
}

}  // namespace stepladder::all_reduce

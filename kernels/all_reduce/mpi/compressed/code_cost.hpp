// The time that a code takes in the cost model. Codes are bound by arithmetic, so they take the
// same time per byte in the caches and beyond them, unlike an addition or a copy.
#pragma once

#include "kernels/common/links.hpp"

namespace stepladder::all_reduce {

// Seconds to copy `bytes` at the speed of copies beyond the caches, the unit of the measured
// factors.
inline double long_copy(const CommunicationCost& c, double bytes) {
  constexpr double beyond = 0x1p26;
  return bytes / beyond * (c.l.copy(2 * beyond) - c.l.copy(beyond));
}

}  // namespace stepladder::all_reduce

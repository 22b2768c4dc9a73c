// What the additions and copies of a rung do and cost in a simulation.
//
// The simulator does not time them: its ranks run one after another on this machine. They compute
// and take no simulated time. If the environment variable SIMULATED_ARITHMETIC is set, they take
// the measured time of as many bytes and touch no data, unless it begins with "compute":
//
//     SIMULATED_ARITHMETIC="add 0:0 1e9:0.12 copy 0:0 1e9:0.1"       bytes:seconds
#pragma once

#include "kernels/common/links.hpp"

namespace stepladder::simulation {

struct Arithmetic {
  bool computes = true;
  CostCurve add, copy;  // empty: no time
};

// Read from the environment before main() and constant: all ranks share one process.
const Arithmetic& arithmetic();

// Lets this rank compute for so many simulated seconds.
void spend(double seconds);

}  // namespace stepladder::simulation

// Finds plans whose times are not those of their work: that are fast only on operands that they have
// just had, that work on after the call, or whose threads do.
#pragma once

#include <string>

#include "harness/problem/case.hpp"

namespace stepladder {

// Runs a plan that was timed, on copy 0, on operands that are changed before each run. A run took
// `seconds` when `runs` in a row were timed. Empty, or what is wrong: results are missing when the call returns, or a run takes
// longer than one whose operands are those of the run before. Both kinds of runs take turns, and the fastest of
// each are compared, so that the decision does not depend on what else the machine does.
// For repeatable variants. With MPI all ranks call it together.
std::string fault_of_pace(Case& problem, const Variant& variant, Runner& runner, double seconds,
                          std::int64_t runs);

// Empty, or that threads of this process go on although no call is under way. Threads of an OpenMP
// team, which may wait actively, do not count.
std::string fault_of_threads();

}  // namespace stepladder

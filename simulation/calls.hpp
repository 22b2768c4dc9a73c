// The MPI calls of the rungs, on their way to SMPI. The linker sends them here (--wrap).
#pragma once

#include <cstdint>

namespace stepladder::simulation {

// Messages that all ranks together have sent so far, without those inside collective operations of
// MPI.
std::int64_t messages_sent();

}  // namespace stepladder::simulation

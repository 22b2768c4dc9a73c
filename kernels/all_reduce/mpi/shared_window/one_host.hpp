// What the rungs in shared memory need to know of the ranks.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/all_reduce/mpi/group.hpp"
#include "kernels/all_reduce/mpi/shared_window/flags.hpp"
#include "kernels/all_reduce/mpi/window.hpp"
#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {

// The communicator of the group. Collective. Throws Unsupported on all ranks if they do not share
// memory.
MPI_Comm communicator_on_one_host(const Group& group);

// Collective: polls briefly if ranks must share cores, as all or as those bound to the same cores.
Patience patience_of(const Group& group);

std::vector<std::byte*> segments_of(const Window& window);  // [rank]

}  // namespace stepladder::all_reduce

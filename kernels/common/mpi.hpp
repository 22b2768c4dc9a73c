// The MPI communicator of a plan.
#pragma once

#include <mpi.h>

#include "kernels/common/variant.hpp"

namespace stepladder {

// Throws Unsupported when the program runs without MPI.
inline MPI_Comm communicator_of(const Resources& resources) {
  if (resources.communicator == nullptr) throw Unsupported("MPI was not started");
  return *static_cast<const MPI_Comm*>(resources.communicator);
}

}  // namespace stepladder

// The one MPI session of the program.
#pragma once

#include "harness/io/mpi_session.hpp"

namespace stepladder {

MpiSession& mpi_session();

}  // namespace stepladder

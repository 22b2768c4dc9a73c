// Stands in for kernels/all_reduce/mpi/window.cpp.
#include "kernels/all_reduce/mpi/window.hpp"

#include "kernels/common/variant.hpp"

namespace stepladder::all_reduce {

Window::Window(MPI_Comm /*communicator*/, std::size_t bytes) : bytes_(bytes) {
  throw Unsupported("the simulation has one rank per host, and hosts share no memory");
}

Window::~Window() = default;

MPI_Comm node_of(MPI_Comm communicator) {
  MPI_Comm node = MPI_COMM_NULL;
  MPI_Comm_split_type(communicator, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  return node;
}

}  // namespace stepladder::all_reduce

// The MPI communicators of a plan.
#pragma once

#include <mpi.h>

#include "kernels/common/variant.hpp"

namespace stepladder {

// Throws Unsupported when the program runs without MPI.
inline MPI_Comm communicator_of(const Resources& resources) {
  if (resources.communicator == nullptr) throw Unsupported("MPI was not started");
  return *static_cast<const MPI_Comm*>(resources.communicator);
}

// A communicator of some of the ranks. It is freed with its owner, which is collective.
class OwnedCommunicator {
 public:
  explicit OwnedCommunicator(MPI_Comm communicator) : communicator_(communicator) {}
  ~OwnedCommunicator() {
    if (communicator_ != MPI_COMM_NULL) MPI_Comm_free(&communicator_);
  }
  OwnedCommunicator(const OwnedCommunicator&) = delete;
  OwnedCommunicator& operator=(const OwnedCommunicator&) = delete;
  MPI_Comm get() const { return communicator_; }  // MPI_COMM_NULL on ranks without one

 private:
  MPI_Comm communicator_;
};

}  // namespace stepladder

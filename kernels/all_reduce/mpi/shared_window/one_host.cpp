#include "kernels/all_reduce/mpi/shared_window/one_host.hpp"

#include <sched.h>

#include <string>

#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {

MPI_Comm communicator_on_one_host(const Group& group) {
  MPI_Comm node = node_of(group.communicator());
  int rank = 0;
  int ranks = 1;
  MPI_Comm_rank(node, &rank);
  MPI_Comm_size(node, &ranks);
  MPI_Comm_free(&node);
  int hosts = rank == 0 ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &hosts, 1, MPI_INT, MPI_SUM, group.communicator());
  if (hosts > 1)
    throw Unsupported("the ranks run on " + std::to_string(hosts) +
                      " hosts: a window is shared within one");
  return group.communicator();
}

Patience patience_of(const Group& group) {
  Patience patience;
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof cores, &cores) != 0) CPU_ZERO(&cores);
  MPI_Allreduce(MPI_IN_PLACE, &cores, sizeof cores, MPI_BYTE, MPI_BOR, group.communicator());
  if (CPU_COUNT(&cores) < group.ranks()) patience.polls = 200;
  return patience;
}

std::vector<std::byte*> segments_of(const Window& window) {
  std::vector<std::byte*> segments;
  for (int rank = 0; rank < window.ranks(); ++rank)
    segments.push_back(window.of(rank, window.segment()));
  return segments;
}

}  // namespace stepladder::all_reduce

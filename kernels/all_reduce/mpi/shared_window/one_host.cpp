#include "kernels/all_reduce/mpi/shared_window/one_host.hpp"

#include <sched.h>

#include <string>
#include <vector>

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
  cpu_set_t mine;
  CPU_ZERO(&mine);
  if (sched_getaffinity(0, sizeof mine, &mine) != 0) CPU_ZERO(&mine);  // as without a core
  std::vector<cpu_set_t> of_rank(static_cast<std::size_t>(group.ranks()));
  MPI_Allgather(&mine, sizeof mine, MPI_BYTE, of_rank.data(), sizeof mine, MPI_BYTE,
                group.communicator());
  cpu_set_t all;
  CPU_ZERO(&all);
  int alike = 0;
  for (const cpu_set_t& cores : of_rank) {
    CPU_OR(&all, &all, &cores);
    if (CPU_EQUAL(&cores, &mine)) ++alike;
  }
  Patience patience;
  if (CPU_COUNT(&all) < group.ranks() || CPU_COUNT(&mine) < alike) patience.polls = 200;
  return patience;
}

std::vector<std::byte*> segments_of(const Window& window) {
  std::vector<std::byte*> segments;
  for (int rank = 0; rank < window.ranks(); ++rank)
    segments.push_back(window.of(rank, window.segment()));
  return segments;
}

}  // namespace stepladder::all_reduce

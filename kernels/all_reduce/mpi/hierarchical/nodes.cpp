#include "kernels/all_reduce/mpi/hierarchical/nodes.hpp"

#include <string>

#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {
namespace {

int over(const Group& group, int value, MPI_Op operation) {
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, operation, group.communicator());
  return value;
}

MPI_Comm split(const Group& group, int color) {
  MPI_Comm part = MPI_COMM_NULL;
  MPI_Comm_split(group.communicator(), color, group.rank(), &part);
  return part;
}

}  // namespace

Nodes::Nodes(const Problem& problem, const Group& all)
    : all_(all),
      communicator_(problem.node_ranks > 0 ? split(all, all.rank() / problem.node_ranks)
                                           : node_of(all.communicator())),
      node_(communicator_.get()),
      smallest_(over(all, node_.ranks(), MPI_MIN)) {
  const int largest = over(all, node_.ranks(), MPI_MAX);
  // Where the ranks run is the same for every problem.
  if (largest == all.ranks()) throw NotHere("all ranks share one node: nothing lies between nodes");
  if (largest == 1) throw NotHere("every node has one rank: nothing lies inside a node");
}

MPI_Comm Nodes::lane(int lane) const { return split(all_, lane < 0 ? MPI_UNDEFINED : lane); }

std::unique_ptr<Window> Nodes::window(std::size_t bytes) const {
  const OwnedCommunicator shared(node_of(node_.communicator()));
  if (over(all_, Group(shared.get()).ranks() == node_.ranks(), MPI_MIN) == 0)
    throw Unsupported("the ranks of a node do not share memory");
  std::unique_ptr<Window> window;
  std::string why;
  try {
    window = std::make_unique<Window>(node_.communicator(), bytes);
  } catch (const Unsupported& error) {  // on this node; the others must know
    why = error.what();
  }
  if (over(all_, window != nullptr, MPI_MIN) == 0) {
    window.reset();
    throw Unsupported(why.empty() ? "another node has too little shared memory" : why);
  }
  return window;
}

}  // namespace stepladder::all_reduce

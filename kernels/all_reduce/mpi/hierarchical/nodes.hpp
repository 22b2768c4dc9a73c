// How the ranks of an all-reduce are divided among nodes, for the two-level rungs.
#pragma once

#include <cstddef>
#include <memory>

#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/all_reduce/mpi/group.hpp"
#include "kernels/all_reduce/mpi/window.hpp"
#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {

class Nodes {
 public:
  // Collective. Throws Unsupported on every rank if there is one node, or if no node has two ranks.
  Nodes(const Problem& problem, const Group& all);

  const Group& node() const { return node_; }  // the ranks of this node, in order
  int smallest() const { return smallest_; }   // ranks of the smallest node

  // Collective over all ranks. The ranks that carry the same lane, one in each node; null for a
  // rank that carries none, which passes a negative number.
  MPI_Comm lane(int lane) const;

  // Collective over all ranks. Memory that the ranks of this node share. Throws on every rank:
  // Unsupported if the ranks of a node share no memory, or a node has too little.
  std::unique_ptr<Window> window(std::size_t bytes) const;

 private:
  const Group& all_;
  OwnedCommunicator communicator_;
  Group node_;
  int smallest_ = 0;
};

}  // namespace stepladder::all_reduce

// Two-level all-reduce: one algorithm inside the nodes and another between them. Links between
// nodes are slower than those inside, so few bytes should cross them.
//
//     reduce     inside each node, to its lanes: a lane is a shard of the vector, which the same
//                rank of each node carries. Star and tree have one lane, the root's; ring and
//                window have one for each rank.
//     between    each lane sums its shard over the nodes, all lanes at once
//     gather     inside each node, the shards of all lanes
//
// A node may have more ranks than the smallest one, whose ranks set the number of lanes. The others
// take part inside their node alone.
//
// Identical bits: the ranks of a lane hold the same bits because one of them completes each
// element's sum, all divide them by the same number, and the others receive copies.
#pragma once

#include <optional>

#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/all_reduce/mpi/group.hpp"
#include "kernels/all_reduce/mpi/hierarchical/nodes.hpp"
#include "kernels/all_reduce/mpi/reduce.hpp"
#include "kernels/common/links.hpp"

namespace stepladder::all_reduce {

template <class Intra, class Inter>
class Hierarchical final : public Plan {
 public:
  Hierarchical(const Problem& problem, const Resources& resources)
      : problem_(problem),
        all_(problem, resources),
        nodes_(problem, all_),
        intra_(nodes_, problem.count),
        lane_(nodes_.lane(intra_.lane())) {
    if (lane_.get() != MPI_COMM_NULL) inter_.emplace(Group(lane_.get()), intra_.shard());
  }

  void run(const Operands& o) override {
    float* const sums = intra_.reduce(o.input, o.output);
    if (inter_) {
      inter_->all_reduce(sums);
      if (problem_.operation == Operation::mean) divide(sums, intra_.shard(), all_.ranks());
    }
    intra_.gather(o.output);
  }

 private:
  Problem problem_;
  Group all_;
  Nodes nodes_;
  Intra intra_;
  OwnedCommunicator lane_;
  std::optional<Inter> inter_;  // on ranks that carry a lane
};

// With lanes, all ranks of a node send between nodes at once.
template <class Intra, class Inter>
double hierarchical_cost(const CommunicationCost& c) {
  return Intra::cost(c) + Inter::cost(c, Intra::lanes(c));
}

}  // namespace stepladder::all_reduce

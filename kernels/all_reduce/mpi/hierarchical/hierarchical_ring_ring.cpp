// Rings inside the nodes and rings between them: the ring leaves a shard on each rank of a node,
// and the ranks that carry the same shard form a ring. Every rank of a node sends to other nodes.
//
//     T = 2 (g-1) (alpha1 + n/g beta1) + 2 (q-1) (alpha2 + n/p beta2) + (g-1 + (q-1)/q) n/g gamma
//
// p ranks, g in each of q = p/g nodes, n bytes; 1 inside nodes, 2 between them, where the g lanes
// send at once: beta2 is up to g times that of a link used alone. A link between nodes carries 2
// (q-1)/q n bytes, where that of ring carries 2 (p-1)/p n, and is crossed in 2 (q-1) steps in
// place of 2 (p-1).
//
// Identical bits: see hierarchical.hpp.
#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/all_reduce/mpi/hierarchical/hierarchical.hpp"
#include "kernels/all_reduce/mpi/hierarchical/ring_levels.hpp"
#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {
namespace {

constexpr VariantInfo info{
    .name = "hierarchical_ring_ring",
    .technique = Technique::mpi,
    .builds_on = "ring",
    .adds =
        "one ring inside each node and, for each shard, one between them: fewer steps cross the "
        "network",
    .idea = Idea::algorithm,
};

const Registration registration{info, make_plan<AllReduce, Hierarchical<IntraRing, InterRing>>,
                                hierarchical_cost<IntraRing, InterRing>};

}  // namespace
}  // namespace stepladder::all_reduce

// A ring inside the nodes and master-slave between them: the ring leaves a shard on each rank of a
// node, and the ranks that carry the same shard are a star.
//
//     T = 2 (g-1) (alpha1 + n/g beta1) + 2 (q-1) (alpha2 + n/g beta2) + (g+q-2)/g n gamma
//
// p ranks, g in each of q = p/g nodes, n bytes; 1 inside nodes, 2 between them, where the g lanes
// send at once: beta2 is up to g times that of a link used alone. All roots are on the first node,
// whose link carries q-1 vectors each way.
//
// Identical bits: see hierarchical.hpp.
#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/all_reduce/mpi/hierarchical/hierarchical.hpp"
#include "kernels/all_reduce/mpi/hierarchical/ring_levels.hpp"
#include "kernels/all_reduce/mpi/hierarchical/rooted_levels.hpp"
#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {
namespace {

constexpr VariantInfo info{
    .name = "hierarchical_ring_star",
    .technique = Technique::mpi,
    .builds_on = "hierarchical_star_star",
    .adds = "a ring inside each node: each of its ranks has a shard to send to other nodes",
    .idea = Idea::algorithm,
};

const Registration registration{info, make_plan<AllReduce, Hierarchical<IntraRing, InterStar>>,
                                hierarchical_cost<IntraRing, InterStar>};

}  // namespace
}  // namespace stepladder::all_reduce

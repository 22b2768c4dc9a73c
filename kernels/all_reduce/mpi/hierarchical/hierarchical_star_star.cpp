// Master-slave inside the nodes and master-slave between them: the root of each node adds the
// vectors of its ranks, and rank 0 those of the roots. Where rank 0 of gather_broadcast receives
// p-1 vectors, here it receives g-1 from its node and q-1 from other nodes.
//
//     T = 2 (g-1) (alpha1 + n beta1) + 2 (q-1) (alpha2 + n beta2) + (g+q-2) n gamma
//
// p ranks, g in each of q = p/g nodes, n bytes; 1 inside nodes, 2 between them. For long vectors
// this is the slowest pair of levels, but only q-1 vectors cross the network each way, not p-g.
//
// Identical bits: see hierarchical.hpp.
#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/all_reduce/mpi/hierarchical/hierarchical.hpp"
#include "kernels/all_reduce/mpi/hierarchical/rooted_levels.hpp"
#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {
namespace {

constexpr VariantInfo info{
    .name = "hierarchical_star_star",
    .technique = Technique::mpi,
    .builds_on = "gather_broadcast",
    .adds = "master-slave inside each node, then among the roots of the nodes",
    .idea = Idea::algorithm,
};

const Registration registration{info, make_plan<AllReduce, Hierarchical<IntraStar, InterStar>>,
                                hierarchical_cost<IntraStar, InterStar>};

}  // namespace
}  // namespace stepladder::all_reduce

// Master-slave inside the nodes and a ring between them: the root of each node adds the vectors of
// its ranks, and the roots form a ring.
//
//     T = 2 (g-1) (alpha1 + n beta1) + 2 (q-1) (alpha2 + n/q beta2) + (g-1 + (q-1)/q) n gamma
//
// p ranks, g in each of q = p/g nodes, n bytes; 1 inside nodes, 2 between them. The time between
// nodes is bounded by 2 n beta2 for any number of them. Each node sends to one other, as one rank.
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
    .name = "hierarchical_star_ring",
    .technique = Technique::mpi,
    .builds_on = "hierarchical_star_star",
    .adds = "a ring among the roots of the nodes in place of a second master",
    .idea = Idea::algorithm,
};

const Registration registration{info, make_plan<AllReduce, Hierarchical<IntraStar, InterRing>>,
                                hierarchical_cost<IntraStar, InterRing>};

}  // namespace
}  // namespace stepladder::all_reduce

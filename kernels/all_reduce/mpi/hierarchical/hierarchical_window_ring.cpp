// Shared memory inside the nodes and rings between them: each rank of a node adds its shard of all
// vectors of the node, which it reads from a window, and the ranks that carry the same shard form
// a ring. Inside the nodes, no message is left.
//
//     T = (2 - 1/g) n copied + (g-1)/g n gamma + 2 barriers
//         + 2 (q-1) (alpha2 + n/p beta2) + (q-1)/p n gamma
//
// p ranks, g in each of q = p/g nodes, n bytes; 2 between nodes, where the g lanes send at once:
// beta2 is up to g times that of a link used alone.
//
// Identical bits: see hierarchical.hpp.
#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/all_reduce/mpi/hierarchical/hierarchical.hpp"
#include "kernels/all_reduce/mpi/hierarchical/ring_levels.hpp"
#include "kernels/all_reduce/mpi/hierarchical/window_level.hpp"
#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {
namespace {

constexpr VariantInfo info{
    .name = "hierarchical_window_ring",
    .technique = Technique::mpi,
    .builds_on = "hierarchical_ring_ring",
    .adds = "shared memory in place of the rings inside the nodes",
    .idea = Idea::shared_memory,
};

const Registration registration{info, make_plan<AllReduce, Hierarchical<IntraWindow, InterRing>>,
                                hierarchical_cost<IntraWindow, InterRing>};

}  // namespace
}  // namespace stepladder::all_reduce

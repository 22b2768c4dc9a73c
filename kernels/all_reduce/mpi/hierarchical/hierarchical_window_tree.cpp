// Shared memory inside the nodes and binomial trees between them: each rank of a node adds its
// shard of all vectors of the node, which it reads from a window, and the ranks that carry the
// same shard form a tree. For vectors of medium length, where the 2 (q-1) messages of
// hierarchical_window_ring cost more than the bytes.
//
//     T = (2 - 1/g) n copied + (g-1)/g n gamma + 2 barriers
//         + log2 q (2 (alpha2 + n/g beta2) + n/g gamma)
//
// p ranks, g in each of q = p/g nodes, n bytes; 2 between nodes, where the g lanes send at once:
// beta2 is up to g times that of a link used alone; the logarithm is rounded up.
//
// Identical bits: see hierarchical.hpp.
#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/all_reduce/mpi/hierarchical/hierarchical.hpp"
#include "kernels/all_reduce/mpi/hierarchical/rooted_levels.hpp"
#include "kernels/all_reduce/mpi/hierarchical/window_level.hpp"
#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {
namespace {

constexpr VariantInfo info{
    .name = "hierarchical_window_tree",
    .technique = Technique::mpi,
    .builds_on = "hierarchical_tree_tree",
    .adds =
        "shared memory inside the nodes; each rank of a node has a shard to send to other nodes",
    .idea = Idea::shared_memory,
};

const Registration registration{info, make_plan<AllReduce, Hierarchical<IntraWindow, InterTree>>,
                                hierarchical_cost<IntraWindow, InterTree>};

}  // namespace
}  // namespace stepladder::all_reduce

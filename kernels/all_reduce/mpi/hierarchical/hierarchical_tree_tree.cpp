// A binomial tree inside the nodes and one between their roots. The least messages in sequence of
// the two-level rungs, so it is for short vectors.
//
//     T = 2 log2 g (alpha1 + n beta1) + 2 log2 q (alpha2 + n beta2) + (log2 g + log2 q) n gamma
//
// p ranks, g in each of q = p/g nodes, n bytes; 1 inside nodes, 2 between them; logarithms rounded
// up. binomial_tree has the same links if g is a power of two and the ranks of a node are
// consecutive. This rung needs neither.
//
// Identical bits: see hierarchical.hpp.
#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/all_reduce/mpi/hierarchical/hierarchical.hpp"
#include "kernels/all_reduce/mpi/hierarchical/rooted_levels.hpp"
#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {
namespace {

constexpr VariantInfo info{
    .name = "hierarchical_tree_tree",
    .technique = Technique::mpi,
    .builds_on = "binomial_tree",
    .adds = "a tree inside each node and one among their roots, whatever ranks a node has",
    .idea = Idea::algorithm,
};

const Registration registration{info, make_plan<AllReduce, Hierarchical<IntraTree, InterTree>>,
                                hierarchical_cost<IntraTree, InterTree>};

}  // namespace
}  // namespace stepladder::all_reduce

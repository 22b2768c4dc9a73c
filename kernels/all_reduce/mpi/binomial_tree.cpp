// A binomial tree in place of the star of gather_broadcast. Pairs of ranks add their vectors, then
// pairs of pairs, until rank 0 has the sum; the broadcast sends it back along the same edges.
//
//     reduce      1 -> 0, 3 -> 2, 5 -> 4, 7 -> 6;  2 -> 0, 6 -> 4;  4 -> 0        p = 8
//     broadcast   0 -> 4;  0 -> 2, 4 -> 6;  0 -> 1, 2 -> 3, 4 -> 5, 6 -> 7
//
//     T = 2 L (alpha + n beta) + L n gamma        p ranks, n bytes, L = log2 p, rounded up
//
// L rounds replace the p-1 messages that rank 0 handles one after another. The whole vector still
// travels in every round, and most ranks wait: half of them send once and receive once.
//
// Identical bits: rank 0 alone completes the sum and divides; the others receive copies.
#include <cmath>

#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/all_reduce/mpi/rooted_plan.hpp"
#include "kernels/all_reduce/mpi/tree_steps.hpp"
#include "kernels/common/links.hpp"
#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {
namespace {

// In the first log2 g rounds partners share a node; later one rank of each node communicates.
double cost(const CommunicationCost& c) {
  const double rounds = std::ceil(std::log2(c.p));
  const double within = c.one_node() ? rounds : std::ceil(std::log2(c.g));
  return 2 * (within * c.l.within.send(c.n) + (rounds - within) * c.l.between.send(c.n)) +
         rounds * c.l.add(c.n);
}

constexpr VariantInfo info{
    .name = "binomial_tree",
    .technique = Technique::mpi,
    .builds_on = "gather_broadcast",
    .adds = "a tree: pairs of ranks add, then pairs of pairs; the sum returns along the same edges",
    .idea = Idea::algorithm,
};

const Registration registration{info, make_plan<AllReduce, RootedPlan<TreeSteps>>, cost};

}  // namespace
}  // namespace stepladder::all_reduce

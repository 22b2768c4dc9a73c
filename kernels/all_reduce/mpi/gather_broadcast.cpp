// The first rung, a synchronous parameter server: rank 0 receives the vector of every other rank,
// adds them in the order of the ranks, and sends the sum back to each. It handles 2 (p-1) messages
// one after another while all others wait.
//
//     T = 2 (p-1) (alpha + n beta) + (p-1) n gamma        p ranks, n bytes
//
// Identical bits: rank 0 alone adds and divides; the others receive copies.
#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/all_reduce/mpi/rooted_plan.hpp"
#include "kernels/all_reduce/mpi/star_steps.hpp"
#include "kernels/common/links.hpp"
#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {
namespace {

// Rank 0 exchanges vectors with the others of its node, then with those of other nodes.
double cost(const CommunicationCost& c) {
  const double within = c.one_node() ? c.p - 1 : c.g - 1;
  const double between = c.p - 1 - within;
  return 2 * (within * c.l.within.send(c.n) + between * c.l.between.send(c.n)) +
         (c.p - 1) * c.l.add(c.n);
}

constexpr VariantInfo info{
    .name = "gather_broadcast",
    .technique = Technique::mpi,
    .adds = "rank 0 receives all vectors, adds them and sends the sum back",
};

const Registration registration{info, make_plan<AllReduce, RootedPlan<StarSteps>>, cost};

}  // namespace
}  // namespace stepladder::all_reduce

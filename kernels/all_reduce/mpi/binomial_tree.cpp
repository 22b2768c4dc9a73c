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
#include "kernels/all_reduce/mpi/group.hpp"
#include "kernels/all_reduce/mpi/reduce.hpp"
#include "kernels/all_reduce/mpi/tree_steps.hpp"
#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/links.hpp"
#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {
namespace {

class BinomialTree final : public Plan {
 public:
  BinomialTree(const Problem& problem, const Resources& resources)
      : problem_(problem),
        group_(problem, resources),
        received_(aligned_array<float>(tree_workspace(group_, problem.count))) {}

  void run(const Operands& o) override {
    tree_reduce(group_, o.input, o.output, problem_.count, received_.get());
    if (problem_.operation == Operation::mean && group_.rank() == 0)
      divide(o.output, problem_.count, group_.ranks());
    tree_broadcast(group_, o.output, problem_.count);
  }

 private:
  Problem problem_;
  Group group_;
  AlignedArray<float> received_;
};

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

const Registration registration{info, make_plan<AllReduce, BinomialTree>, cost};

}  // namespace
}  // namespace stepladder::all_reduce

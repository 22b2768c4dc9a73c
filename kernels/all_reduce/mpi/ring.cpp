// Ring all-reduce: the vector is divided into one chunk per rank, and p chunks travel round the
// ring at once. All links and all ranks are busy all the time.
//
//     reduce-scatter  p-1 steps; each rank sends a chunk and adds its values to the received one.
//                     Chunk 3 of p = 4:  rank 3 -> 0 -> 1 -> 2, where its sum is complete
//     all-gather      p-1 steps; the complete chunks travel round the ring.
//                     Chunk 3:  rank 2 -> 3 -> 0 -> 1
//
//     T = 2 (p-1) alpha + 2 (p-1)/p n beta + (p-1)/p n gamma        p ranks, n bytes
//
// Each rank sends 2 (p-1)/p n bytes, the minimum of any all-reduce (Patarasuk and Yuan, Bandwidth
// optimal all-reduce algorithms for clusters of workstations, 2009): 1/p of token_ring's time for
// long vectors, and the same time for short ones, where alpha dominates.
//
// Identical bits: the sum of a chunk is completed on one rank and then copied.
#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/all_reduce/mpi/group.hpp"
#include "kernels/all_reduce/mpi/reduce.hpp"
#include "kernels/all_reduce/mpi/ring_steps.hpp"
#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/links.hpp"
#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {
namespace {

class Ring final : public Plan {
 public:
  Ring(const Problem& problem, const Resources& resources)
      : problem_(problem),
        group_(problem, resources),
        received_(aligned_array<float>(longest_chunk(group_, problem.count))) {}

  void run(const Operands& o) override {
    reduce_scatter(group_, o.input, o.output, problem_.count, received_.get());
    const Chunk own = own_chunk(group_, problem_.count);
    if (problem_.operation == Operation::mean)
      divide(o.output + own.first, own.count, group_.ranks());
    all_gather(group_, o.output, problem_.count);
  }

 private:
  Problem problem_;
  Group group_;
  AlignedArray<float> received_;
};

// Each step sends and adds a chunk of n/p bytes.
double cost(const CommunicationCost& c) {
  const double chunk = c.n / c.p;
  return (c.p - 1) * (2 * c.flat().shift(chunk) + c.l.add(chunk));
}

constexpr VariantInfo info{
    .name = "ring",
    .technique = Technique::mpi,
    .builds_on = "token_ring",
    .adds = "one chunk per rank travels round the ring: all ranks send, receive and add at once",
    .idea = Idea::algorithm,
};

const Registration registration{info, make_plan<AllReduce, Ring>, cost};

}  // namespace
}  // namespace stepladder::all_reduce

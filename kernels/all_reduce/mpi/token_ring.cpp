// The vector as a token: rank 0 sends its vector to rank 1, which adds its own and sends the sum to
// rank 2, and so on. The last rank has the total and sends it round the ring once more.
//
//     rank:   0 -> 1 -> 2 -> 3      partial sums
//             3 -> 0 -> 1 -> 2      the total
//
//     T = 2 (p-1) (alpha + n beta) + (p-1) n gamma        p ranks, n bytes
//
// The time is that of gather_broadcast, since one rank works while the others wait. The gain is
// balance: no rank sends more than 2 n bytes, where rank 0 sent (p-1) n, and all ranks add.
//
// Identical bits: the last rank computes the total, which is then copied.
#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/all_reduce/mpi/group.hpp"
#include "kernels/all_reduce/mpi/reduce.hpp"
#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/links.hpp"
#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {
namespace {

class TokenRing final : public Plan {
 public:
  TokenRing(const Problem& problem, const Resources& resources)
      : problem_(problem),
        group_(problem, resources),
        received_(aligned_array<float>(group_.rank() == 0 ? 0 : problem.count)) {}

  void run(const Operands& o) override {
    const std::int64_t count = problem_.count;
    const int ranks = group_.ranks();
    const int rank = group_.rank();
    const int last = ranks - 1;
    const int next = group_.next(), previous = group_.previous();

    // Partial sums, from rank 0 to the last.
    if (rank == 0) {
      copy(o.input, o.output, count);
    } else {
      group_.receive(received_.get(), count, previous);
      add(received_.get(), o.input, o.output, count);
    }
    if (rank != last) group_.send(o.output, count, next);
    if (rank == last && problem_.operation == Operation::mean) divide(o.output, count, ranks);

    // The total, from the last rank round to rank last - 1.
    if (rank != last) group_.receive(o.output, count, previous);
    if (next != last) group_.send(o.output, count, next);
  }

 private:
  Problem problem_;
  Group group_;
  AlignedArray<float> received_;  // [count], empty on rank 0
};

// The vector passes p-1 links twice; p/g - 1 of them connect nodes.
double cost(const CommunicationCost& c) {
  const double between = c.one_node() ? 0 : c.p / c.g - 1;
  const double within = c.p - 1 - between;
  return 2 * (within * c.l.within.send(c.n) + between * c.l.between.send(c.n)) +
         (c.p - 1) * c.l.add(c.n) + c.l.copy(c.n);
}

constexpr VariantInfo info{
    .name = "token_ring",
    .technique = Technique::mpi,
    .builds_on = "gather_broadcast",
    .adds = "each rank adds its vector and sends the sum on; no rank carries all the traffic",
    .idea = Idea::algorithm,
};

const Registration registration{info, make_plan<AllReduce, TokenRing>, cost};

}  // namespace
}  // namespace stepladder::all_reduce

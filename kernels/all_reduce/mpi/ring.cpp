// Cuts the vector into one chunk per rank and sends p tokens round the ring at once, so that every
// link and every rank works all the time.
//
//     reduce-scatter  p-1 steps; each rank sends a chunk on and adds its part to the one coming in.
//                     Chunk 3 of p = 4:  rank 3 -> 0 -> 1 -> 2, where its sum is complete
//     all-gather      p-1 steps; the finished chunks go round, each received into its place.
//                     Chunk 3:  rank 2 -> 3 -> 0 -> 1
//
//     T = 2 (p-1) alpha + 2 (p-1)/p n beta + (p-1)/p n gamma        p ranks, n bytes
//
// Each rank sends 2 (p-1)/p n bytes, the least that any all-reduce can (Patarasuk and Yuan,
// Bandwidth optimal all-reduce algorithms for clusters of workstations, 2009): 1/p of a token's
// time for long vectors, the same for short ones, where only alpha counts.
//
// Identical bits: the sum of a chunk is formed along the ring, finished on one rank, then copied.
#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/all_reduce/mpi/group.hpp"
#include "kernels/all_reduce/mpi/reduce.hpp"
#include "kernels/all_reduce/ring_schedule.hpp"
#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {
namespace {

class Ring final : public Plan {
 public:
  Ring(const Problem& problem, const Resources& resources)
      : problem_(problem),
        group_(problem, resources),
        received_(aligned_array<float>(problem.count / group_.ranks() + 1)) {}

  void run(const Operands& o) override {
    const int ranks = group_.ranks();
    const int rank = group_.rank();
    const int next = (rank + 1) % ranks;
    const int previous = (rank + ranks - 1) % ranks;

    // Reduce-scatter. What goes out at step 0 is still the input, later a partial sum.
    for (int step = 0; step < ranks - 1; ++step) {
      const Part out = part(part_to_sum(next, step));
      const Part in = part(part_to_sum(rank, step));
      const float* source = step == 0 ? o.input : o.output;
      group_.exchange({source + out.first, out.count, next}, {received_.get(), in.count, previous});
      add(received_.get(), o.input + in.first, o.output + in.first, in.count);
    }

    const Part own = part(rank + 1);
    if (ranks == 1) copy(o.input, o.output, own.count);
    if (problem_.operation == Operation::mean) divide(o.output + own.first, own.count, ranks);

    // All-gather.
    for (int step = 0; step < ranks - 1; ++step) {
      const Part out = part(part_to_gather(next, step));
      const Part in = part(part_to_gather(rank, step));
      group_.exchange({o.output + out.first, out.count, next},
                      {o.output + in.first, in.count, previous});
    }
  }

 private:
  Part part(int index) const { return part_of({0, problem_.count}, group_.ranks(), index); }

  Problem problem_;
  Group group_;
  AlignedArray<float> received_;  // the longest chunk
};

constexpr VariantInfo info{
    .name = "ring",
    .technique = Technique::mpi,
    .builds_on = "token_ring",
    .adds = "a chunk per rank goes round, so that all ranks send, receive and add at once",
};

const Registration registration{info, make_plan<AllReduce, Ring>};

}  // namespace
}  // namespace stepladder::all_reduce

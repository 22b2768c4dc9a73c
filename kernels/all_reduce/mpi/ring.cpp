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

    // Reduce-scatter: step 0 sends the input, later steps send partial sums.
    for (int step = 0; step < ranks - 1; ++step) {
      const Chunk out = chunk(reduce_scatter_chunk(next, step));
      const Chunk in = chunk(reduce_scatter_chunk(rank, step));
      const float* source = step == 0 ? o.input : o.output;
      group_.exchange({source + out.first, out.count, next}, {received_.get(), in.count, previous});
      add(received_.get(), o.input + in.first, o.output + in.first, in.count);
    }

    const Chunk own = chunk(rank + 1);
    if (ranks == 1) copy(o.input, o.output, own.count);
    if (problem_.operation == Operation::mean) divide(o.output + own.first, own.count, ranks);

    // All-gather.
    for (int step = 0; step < ranks - 1; ++step) {
      const Chunk out = chunk(all_gather_chunk(next, step));
      const Chunk in = chunk(all_gather_chunk(rank, step));
      group_.exchange({o.output + out.first, out.count, next},
                      {o.output + in.first, in.count, previous});
    }
  }

 private:
  Chunk chunk(int index) const { return chunk_of({0, problem_.count}, group_.ranks(), index); }

  Problem problem_;
  Group group_;
  AlignedArray<float> received_;  // the longest chunk
};

constexpr VariantInfo info{
    .name = "ring",
    .technique = Technique::mpi,
    .builds_on = "token_ring",
    .adds = "one chunk per rank travels round the ring: all ranks send, receive and add at once",
};

const Registration registration{info, make_plan<AllReduce, Ring>};

}  // namespace
}  // namespace stepladder::all_reduce

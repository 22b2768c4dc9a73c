// The first rung, a synchronous parameter server: rank 0 receives the vector of every other rank,
// adds them in the order of the ranks, and sends the sum back to each. It handles 2 (p-1) messages
// one after another while all others wait.
//
//     T = 2 (p-1) (alpha + n beta) + (p-1) n gamma        p ranks, n bytes
//
// Identical bits: rank 0 alone adds and divides; the others receive copies.
#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/all_reduce/mpi/group.hpp"
#include "kernels/all_reduce/mpi/reduce.hpp"
#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {
namespace {

class GatherBroadcast final : public Plan {
 public:
  GatherBroadcast(const Problem& problem, const Resources& resources)
      : problem_(problem),
        group_(problem, resources),
        received_(aligned_array<float>(group_.rank() == 0 ? problem.count : 0)) {}

  void run(const Operands& o) override {
    const std::int64_t count = problem_.count;
    if (group_.rank() != 0) {
      group_.send(o.input, count, 0);
      group_.receive(o.output, count, 0);
      return;
    }
    copy(o.input, o.output, count);
    for (int rank = 1; rank < group_.ranks(); ++rank) {
      group_.receive(received_.get(), count, rank);
      add(o.output, received_.get(), o.output, count);
    }
    if (problem_.operation == Operation::mean) divide(o.output, count, group_.ranks());
    for (int rank = 1; rank < group_.ranks(); ++rank) group_.send(o.output, count, rank);
  }

 private:
  Problem problem_;
  Group group_;
  AlignedArray<float> received_;  // [count] on rank 0
};

constexpr VariantInfo info{
    .name = "gather_broadcast",
    .technique = Technique::mpi,
    .adds = "rank 0 receives all vectors, adds them and sends the sum back",
};

const Registration registration{info, make_plan<AllReduce, GatherBroadcast>};

}  // namespace
}  // namespace stepladder::all_reduce

// Data parallelism as it is usually written: all ranks all-reduce the whole gradient, here by the
// ring, and then every rank updates all weights. All ranks do the same update: p times the work,
// and p times the state.
//
//     T = T_ring(n) + u n        p ranks, n bytes, u seconds per byte of weights updated
//
// Identical bits: the ring gives all ranks the same mean, and all do the same arithmetic on the
// same weights and state.
#include "kernels/all_reduce/mpi/group.hpp"
#include "kernels/all_reduce/mpi/reduce.hpp"
#include "kernels/all_reduce/mpi/ring_steps.hpp"
#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/mpi.hpp"
#include "kernels/sgd_update/mpi/update_shard.hpp"

namespace stepladder::sgd_update {
namespace {

class AllReduceUpdate final : public Plan {
 public:
  AllReduceUpdate(const Problem& problem, const Resources& resources)
      : problem_(problem),
        group_(mean_of_gradients(problem), resources),
        mean_(aligned_array<float>(problem.count)),
        received_(aligned_array<float>(all_reduce::longest_chunk(group_, problem.count))) {}

  void run(const Operands& o) override {
    const std::int64_t count = problem_.count;
    all_reduce::reduce_scatter(group_, o.gradient, mean_.get(), count, received_.get());
    const all_reduce::Chunk own = all_reduce::own_chunk(group_, count);
    all_reduce::divide(mean_.get() + own.first, own.count, static_cast<float>(group_.ranks()));
    all_reduce::all_gather(group_, mean_.get(), count);
    update_shard(problem_, o, mean_.get(), 0, count);
  }

 private:
  Problem problem_;
  all_reduce::Group group_;
  AlignedArray<float> mean_;      // [count]
  AlignedArray<float> received_;  // [longest_chunk]
};

double cost(const CommunicationCost& c) {
  const double chunk = c.n / c.p;
  return (c.p - 1) * (2 * c.flat().shift(chunk) + c.l.add(chunk)) + update_cost(c, c.n);
}

constexpr VariantInfo info{
    .name = "all_reduce_update",
    .technique = Technique::mpi,
    .adds = "the ring all-reduces the gradient, then every rank updates all weights",
    .idea = Idea::processes,
    .isa = build_isa,
    .over_ranks = true,
};

const Registration registration{info, make_plan<SgdUpdate, AllReduceUpdate>, cost};

}  // namespace
}  // namespace stepladder::sgd_update

// The update between the two halves of the all-reduce: after the reduce-scatter a rank has the mean
// gradient of one shard, updates the weights of that shard, and the all-gather distributes weights
// instead of gradients (ZeRO stage 1: Rajbhandari et al., ZeRO: Memory optimizations toward
// training trillion parameter models, 2020). The messages are those of all_reduce_update; each rank
// updates 1/p of the weights and touches 1/p of the state.
//
//     T = T_ring(n) + u n/p        p ranks, n bytes, u seconds per byte of weights updated
//
// A rank never touches the state of other shards: the memory could be saved, and a checkpoint must
// collect the shards. Shard r + 1 belongs to rank r.
//
// Identical bits: each weight is updated on one rank and then copied.
#include "kernels/all_reduce/mpi/group.hpp"
#include "kernels/all_reduce/mpi/reduce.hpp"
#include "kernels/all_reduce/mpi/ring_steps.hpp"
#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/mpi.hpp"
#include "kernels/sgd_update/mpi/update_shard.hpp"

namespace stepladder::sgd_update {
namespace {

class ShardedUpdate final : public Plan {
 public:
  ShardedUpdate(const Problem& problem, const Resources& resources)
      : problem_(problem),
        group_(mean_of_gradients(problem), resources),
        sums_(aligned_array<float>(problem.count)),
        received_(aligned_array<float>(all_reduce::longest_chunk(group_, problem.count))) {}

  void run(const Operands& o) override {
    const std::int64_t count = problem_.count;
    all_reduce::reduce_scatter(group_, o.gradient, sums_.get(), count, received_.get());
    const all_reduce::Chunk shard = all_reduce::own_chunk(group_, count);
    float* const mean = sums_.get() + shard.first;
    all_reduce::divide(mean, shard.count, static_cast<float>(group_.ranks()));
    update_shard(problem_, o, mean, shard.first, shard.count);
    all_reduce::all_gather(group_, o.weights, count);
  }

 private:
  Problem problem_;
  all_reduce::Group group_;
  AlignedArray<float> sums_;      // [count]; complete in the shard alone
  AlignedArray<float> received_;  // [longest_chunk]
};

double cost(const CommunicationCost& c) {
  const double chunk = c.n / c.p;
  return (c.p - 1) * (2 * c.flat().shift(chunk) + c.l.add(chunk)) + update_cost(c, chunk);
}

constexpr VariantInfo info{
    .name = "sharded_update",
    .technique = Technique::mpi,
    .builds_on = "all_reduce_update",
    .adds = "each rank updates one shard, between the reduce-scatter and the all-gather",
    .idea = Idea::algorithm,
    .isa = build_isa,
    .over_ranks = true,
};

const Registration registration{info, make_plan<SgdUpdate, ShardedUpdate>, cost};

}  // namespace
}  // namespace stepladder::sgd_update

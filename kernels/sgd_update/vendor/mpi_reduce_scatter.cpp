// sharded_update with the collective operations of the MPI library: MPI_Reduce_scatter gives each
// rank the sum of its shard, and MPI_Allgatherv distributes the new weights. The library chooses
// the algorithms; the update itself is that of sharded_update. Shard r belongs to rank r.
//
// Identical bits: each weight is updated on one rank and then copied.
#include <limits>
#include <vector>

#include "kernels/all_reduce/mpi/group.hpp"
#include "kernels/all_reduce/mpi/reduce.hpp"
#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/partition.hpp"
#include "kernels/common/mpi.hpp"
#include "kernels/sgd_update/mpi/update_shard.hpp"

namespace stepladder::sgd_update {
namespace {

class MpiReduceScatter final : public Plan {
 public:
  MpiReduceScatter(const Problem& problem, const Resources& resources)
      : problem_(problem), group_(mean_of_gradients(problem), resources) {
    if (problem.count > std::numeric_limits<int>::max())
      throw Unsupported("MPI_Allgatherv takes positions below 2^31");
    for (int rank = 0; rank < group_.ranks(); ++rank) {
      const auto [begin, end] = partition(problem.count, group_.ranks(), rank);
      firsts_.push_back(static_cast<int>(begin));
      counts_.push_back(static_cast<int>(end - begin));
    }
    const auto here = static_cast<std::size_t>(group_.rank());
    first_ = firsts_[here];
    count_ = counts_[here];
    mean_ = aligned_array<float>(count_);
  }

  void run(const Operands& o) override {
    MPI_Reduce_scatter(o.gradient, mean_.get(), counts_.data(), MPI_FLOAT, MPI_SUM,
                       group_.communicator());
    all_reduce::divide(mean_.get(), count_, static_cast<float>(group_.ranks()));
    update_shard(problem_, o, mean_.get(), first_, count_);
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, o.weights, counts_.data(), firsts_.data(),
                   MPI_FLOAT, group_.communicator());
  }

 private:
  Problem problem_;
  all_reduce::Group group_;
  std::vector<int> firsts_, counts_;    // [rank], of the shards
  std::int64_t first_ = 0, count_ = 0;  // of the shard of this rank
  AlignedArray<float> mean_;            // [count_]
};

constexpr VariantInfo info{
    .name = "mpi_reduce_scatter",
    .technique = Technique::vendor,
    .adds = "MPI_Reduce_scatter, the update of a shard, MPI_Allgatherv",
    .isa = build_isa,
    .over_ranks = true,
};

const Registration registration{info, make_plan<SgdUpdate, MpiReduceScatter>};

}  // namespace
}  // namespace stepladder::sgd_update

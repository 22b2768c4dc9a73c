// MPI_Allreduce. The library chooses an algorithm by count and number of ranks: Open MPI 4.1 has,
// among others, recursive doubling, a ring, a segmented ring and Rabenseifner's algorithm.
//
// Identical bits: the MPI standard requires that all ranks receive identical results; for the mean,
// all ranks divide them by the same number.
#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/all_reduce/mpi/group.hpp"
#include "kernels/all_reduce/vendor/mpi_algorithm.hpp"
#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {
namespace {

class MpiAllreduce final : public Plan {
 public:
  MpiAllreduce(const Problem& problem, const Resources& resources)
      : problem_(problem), group_(problem, resources) {}

  void run(const Operands& o) override { mpi_allreduce(problem_, o, group_.communicator()); }

 private:
  Problem problem_;
  Group group_;
};

constexpr VariantInfo info{
    .name = "mpi_allreduce",
    .technique = Technique::vendor,
    .adds = "MPI_Allreduce, with the algorithm that the MPI library chooses",
};

const Registration registration{info, make_plan<AllReduce, MpiAllreduce>};

}  // namespace
}  // namespace stepladder::all_reduce

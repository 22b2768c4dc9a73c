// MPI_Allreduce by Open MPI's nonoverlapping: MPI_Reduce to rank 0, then MPI_Bcast, each with the
// algorithm that the library chooses for it (trees, or pipelines for long vectors). The broadcast
// begins when the reduction has ended.
//
//     T = 2 L (alpha + n beta) + L n gamma with binomial trees        p ranks, n bytes, L = log2 p
//
// Identical bits: rank 0 has the sum, and the others receive a copy.
#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/all_reduce/vendor/mpi_algorithm.hpp"
#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {
namespace {

constexpr VariantInfo info{
    .name = "mpi_nonoverlapping",
    .technique = Technique::vendor,
    .builds_on = "mpi_allreduce",
    .adds = "Open MPI's nonoverlapping: MPI_Reduce, then MPI_Bcast",
};

const Registration registration{info, mpi_algorithm<info>};

}  // namespace
}  // namespace stepladder::all_reduce

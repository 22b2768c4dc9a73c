// MPI_Allreduce by Open MPI's basic_linear: rank 0 receives and adds all vectors, one after the
// other, and broadcasts the sum. The library's form of gather_broadcast.
//
//     T = 2 (p-1) (alpha + n beta) + (p-1) n gamma        p ranks, n bytes
//
// Identical bits: rank 0 adds, and the others receive a copy.
#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/all_reduce/vendor/mpi_algorithm.hpp"
#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {
namespace {

constexpr VariantInfo info{
    .name = "mpi_basic_linear",
    .technique = Technique::vendor,
    .builds_on = "mpi_allreduce",
    .adds = "Open MPI's basic_linear: rank 0 adds all vectors and broadcasts the sum",
};

const Registration registration{info, mpi_algorithm<info>};

}  // namespace
}  // namespace stepladder::all_reduce

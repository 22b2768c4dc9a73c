// MPI_Allreduce by Open MPI's rabenseifner: reduce-scatter by recursive halving, all-gather by
// recursive doubling (Rabenseifner, Optimization of collective reduction operations, 2004). With
// fewer elements than ranks the library uses basic_linear instead.
//
//     T = 2 L alpha + 2 (p-1)/p n beta + (p-1)/p n gamma        p = 2^L ranks, n bytes
//
// Identical bits: the sum of a part is completed on one rank and then copied.
#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/all_reduce/vendor/mpi_algorithm.hpp"
#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {
namespace {

constexpr VariantInfo info{
    .name = "mpi_rabenseifner",
    .technique = Technique::vendor,
    .builds_on = "mpi_allreduce",
    .adds = "Open MPI's rabenseifner: reduce-scatter by halving, all-gather by doubling",
};

const Registration registration{info, mpi_algorithm<info>};

}  // namespace
}  // namespace stepladder::all_reduce

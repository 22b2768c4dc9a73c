// MPI_Allreduce by Open MPI's ring: a reduce-scatter and an all-gather round the ring, one chunk
// per rank. With fewer elements than ranks the library uses recursive doubling instead.
//
//     T = 2 (p-1) alpha + 2 (p-1)/p n beta + (p-1)/p n gamma        p ranks, n bytes
//
// Identical bits: the sum of a chunk is completed on one rank and then copied.
#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/all_reduce/vendor/mpi_algorithm.hpp"
#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {
namespace {

constexpr VariantInfo info{
    .name = "mpi_ring",
    .technique = Technique::vendor,
    .builds_on = "mpi_allreduce",
    .adds = "Open MPI's ring: one chunk per rank travels round the ring",
};

const Registration registration{info, mpi_algorithm<info>};

}  // namespace
}  // namespace stepladder::all_reduce

// MPI_Allreduce by Open MPI's recursive_doubling: ranks at distance 1, 2, 4, … exchange whole
// vectors and both add. The library's form of the rung of that name.
//
//     T = L (alpha + n beta + n gamma)        p ranks, n bytes, L = log2 p
//
// Identical bits: both partners add the same two numbers, and IEEE addition commutes.
#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/all_reduce/vendor/mpi_algorithm.hpp"
#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {
namespace {

constexpr VariantInfo info{
    .name = "mpi_recursive_doubling",
    .technique = Technique::vendor,
    .builds_on = "mpi_allreduce",
    .adds = "Open MPI's recursive_doubling: ranks at distance 1, 2, 4, … exchange vectors",
};

const Registration registration{info, mpi_algorithm<info>};

}  // namespace
}  // namespace stepladder::all_reduce

// MPI_Allreduce by Open MPI's segmented_ring: its ring on segments of the chunks. A rank that
// receives a segment adds it at once, while the rest of the chunk is on its way in later messages.
// The library asks for a segment size; this variant sets 256 KiB. For vectors of fewer than p
// segments it uses its ring instead.
//
//     T = 2 (p-1) s alpha + 2 (p-1)/p n beta + (p-1)/p n gamma        p ranks, n bytes
//
// with s = n / (p · 256 KiB) segments in a chunk, which stay in the L2 cache from message to
// addition.
//
// Identical bits: the sum of a segment is completed on one rank and then copied.
#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/all_reduce/vendor/mpi_algorithm.hpp"
#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {
namespace {

constexpr int segment_bytes = 1 << 18;
constexpr VariantInfo info{
    .name = "mpi_segmented_ring",
    .technique = Technique::vendor,
    .builds_on = "mpi_allreduce",
    .adds = "Open MPI's segmented_ring: its ring on segments of the chunks",
};

const Registration registration{info, mpi_algorithm<info, segment_bytes>};

}  // namespace
}  // namespace stepladder::all_reduce

// Operands packed into tiles: a vector of B is one group of 16 neurons, so that every lane sums for
// one element of C and no lanes are added. A group of A is broadcast.
#include "kernels/low_precision/cpu/narrow_rows.hpp"

namespace stepladder::low_precision {
namespace {

constexpr VariantInfo info{
    .name = "packed",
    .technique = Technique::simd,
    .builds_on = "tiled",
    .adds = "operands packed into tiles of consecutive cache lines; a tile of 8 x 48 sums",
    .idea = Idea::packing,
};

const Registration registration{info, packed_plan<>};

}  // namespace
}  // namespace stepladder::low_precision

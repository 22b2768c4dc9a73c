// The ring with messages in fp16: half the bytes, and eight times the precision of bf16. Every hop
// adds in fp32 and rounds the partial sum to nearest, ties to even, before it sends it on. Each
// block of 1,024 values has a scale of its own, a power of two in two more bytes, so that sums do
// not overflow at 65,504 and small gradients do not become subnormal (narrow_floats.hpp).
//
//     T = 2 (p-1) alpha + (p-1)/p n beta + (p-1)/p n (gamma + c)    c: to scale and convert a byte
//
// Error: as in bf16_ring, with u = 2^-11. A value below 2^-29 of the largest in its block is
// rounded to 2^-40 of that instead; such values do not occur where the bound is checked.
//
// Identical bits: the owner of a chunk also takes its rounded values (compressed_ring.hpp).
#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/all_reduce/mpi/compressed/compressed_ring.hpp"
#include "kernels/all_reduce/mpi/compressed/ring_16_bit.hpp"
#include "kernels/common/links.hpp"
#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {
namespace {

// Measured, in roundings to bf16 in the caches: 1.2 to encode, 2.8 to decode, add and encode, 1.2
// to decode.
double cost(const CommunicationCost& c) {
  const double chunk = c.n / c.p;
  return (c.p - 1) * (2 * c.flat().shift(chunk / 2) + 2.8 * chunk * c.l.code) +
         c.l.code * (1.2 * (chunk + c.n));
}

constexpr VariantInfo info{
    .name = "fp16_ring",
    .technique = Technique::mpi,
    .builds_on = "ring",
    .adds = "messages in fp16, scaled by blocks: half the bytes, with 11 bits of precision",
    .idea = Idea::compression,
    .precision = Precision::fp16,
    .operand_error = 5 * 0x1p-11,
    .encoded_share = 0.5 * 1025 / 1024,
};

const Registration registration{info, make_plan<AllReduce, CompressedRing<Codec16<Fp16>>>, cost};

}  // namespace
}  // namespace stepladder::all_reduce

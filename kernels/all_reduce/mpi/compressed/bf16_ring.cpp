// The ring with messages in bf16: half the bytes. Every hop adds in fp32 and rounds the partial sum
// to nearest, ties to even, before it sends it on. bf16 has the range of fp32: nothing overflows.
//
//     T = 2 (p-1) alpha + (p-1)/p n beta + (p-1)/p n (gamma + c)    c: to convert a byte
//
// Error: an element is rounded p times, each time by up to u = 2^-8 of the partial sum. So it is at
// most p u sum|x|, and for summands with random signs it grows with sqrt(p) of that and less. The
// declared bound 5 u sum|x| is the former for up to five ranks; beyond that it holds for random
// signs, of which a test simulates up to 1,024 ranks. For summands of one sign, expect p u / 4.
//
// Identical bits: the owner of a chunk also takes its rounded values (compressed_ring.hpp).
#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/all_reduce/mpi/compressed/compressed_ring.hpp"
#include "kernels/all_reduce/mpi/compressed/ring_16_bit.hpp"
#include "kernels/common/links.hpp"
#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {
namespace {

// Measured, in roundings to bf16 in the caches: 1.2 to encode, 2.2 to decode, add and encode, 1 to
// decode.
double cost(const CommunicationCost& c) {
  const double chunk = c.n / c.p;
  return (c.p - 1) * (2 * c.flat().shift(chunk / 2) + 2.2 * chunk * c.l.code) +
         c.l.code * (1.2 * chunk + c.n);
}

constexpr VariantInfo info{
    .name = "bf16_ring",
    .technique = Technique::mpi,
    .builds_on = "ring",
    .adds = "messages in bf16: half the bytes, with 8 bits of precision",
    .idea = Idea::compression,
    .precision = Precision::bf16,
    .operand_error = 5 * 0x1p-8,
    .encoded_share = 0.5,
};

const Registration registration{info, make_plan<AllReduce, CompressedRing<Codec16<Bf16>>>, cost};

}  // namespace
}  // namespace stepladder::all_reduce

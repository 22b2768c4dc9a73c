// 1-bit all-reduce with error feedback: a sign per element and a mean magnitude per block of 64, so
// 1.5 bits (sign_code.hpp). What the code loses is added to the next input (Seide et al., 2014).
//
//     scatter     each rank encodes input + residual and sends chunk r to rank r, which decodes and
//                 adds p chunks
//     all-gather  rank r encodes its sum, with a residual of its own; the code goes round the ring
//
//     T = 2 (p-1) alpha + 2 (p-1)/p 3/64 n beta + c n    c: to encode and decode a byte
//
// The outputs of all calls together differ from the exact results by the residuals alone. A rank
// adds its own chunk as it is, so its residual there holds what its code of the sum loses.
//
// Identical bits: all ranks decode the same code, also the rank that encoded it.
#include <algorithm>
#include <utility>

#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/all_reduce/mpi/compressed/messages.hpp"
#include "kernels/all_reduce/mpi/compressed/sign_code.hpp"
#include "kernels/all_reduce/mpi/group.hpp"
#include "kernels/all_reduce/mpi/reduce.hpp"
#include "kernels/all_reduce/ring_schedule.hpp"
#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/links.hpp"
#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {
namespace {

class OneBit final : public Plan {
 public:
  OneBit(const Problem& problem, const Resources& resources)
      : problem_(problem),
        group_(problem, resources),
        longest_(problem.count / group_.ranks() + 1),
        capacity_(sign_code_bytes(longest_)),
        residual_(aligned_array<float>(problem.count)),
        sum_(aligned_array<float>(longest_)),
        outgoing_(aligned_array<std::byte>(capacity_)),
        incoming_(aligned_array<std::byte>(capacity_)) {
    std::fill_n(residual_.get(), problem.count, 0.0f);
  }

  void run(const Operands& o) override {
    const int ranks = group_.ranks();
    const int rank = group_.rank();
    if (ranks == 1) return copy(o.input, o.output, problem_.count);
    const Chunk own = chunk(rank);
    copy(o.input + own.first, sum_.get(), own.count);
    for (int distance = 1; distance < ranks; ++distance) {
      const int to = (rank + distance) % ranks;
      const Chunk out = chunk(to);
      encode_signs(o.input + out.first, residual_.get() + out.first, out.count, outgoing_.get());
      exchange(to, (rank + ranks - distance) % ranks, out.count);
      add_decoded_signs(incoming_.get(), own.count, sum_.get());
    }
    if (problem_.operation == Operation::mean)
      divide(sum_.get(), own.count, static_cast<float>(ranks));
    encode_signs(sum_.get(), residual_.get() + own.first, own.count, outgoing_.get());
    decode_signs(outgoing_.get(), own.count, o.output + own.first);
    for (int step = 0; step < ranks - 1; ++step) {
      const Chunk in = chunk(rank - 1 - step);
      exchange(group_.next(), group_.previous(), chunk(rank - step).count);
      decode_signs(incoming_.get(), in.count, o.output + in.first);
      std::swap(incoming_, outgoing_);
    }
  }

 private:
  Chunk chunk(int index) const { return chunk_of({0, problem_.count}, group_.ranks(), index); }
  void exchange(int to, int from, std::int64_t count) const {
    exchange_bytes(group_, {outgoing_.get(), sign_code_bytes(count), to},
                   {incoming_.get(), capacity_, from});
  }

  Problem problem_;
  Group group_;
  std::int64_t longest_, capacity_;              // of a chunk: elements, bytes of its code
  AlignedArray<float> residual_;                 // [count]
  AlignedArray<float> sum_;                      // [longest_]
  AlignedArray<std::byte> outgoing_, incoming_;  // [capacity_]
};

// Measured, in roundings to bf16 in the caches: 3.3 to encode, 2.9 to decode and add, 1 to decode.
double cost(const CommunicationCost& c) {
  const double chunk = c.n / c.p;
  return (c.p - 1) * (2 * c.flat().shift(chunk * 3 / 64) + 2.9 * chunk * c.l.code) +
         4.3 * c.n * c.l.code;
}

constexpr VariantInfo info{
    .name = "one_bit",
    .technique = Technique::mpi,
    .builds_on = "ring",
    .adds = "a sign per element and a magnitude per block; what is lost is added to the next input",
    .idea = Idea::compression,
    .encoded_share = 3.0 / 64,
    .contraction = 1.0 / 64,
    .compressions = 2,
};

const Registration registration{info, make_plan<AllReduce, OneBit>, cost};

}  // namespace
}  // namespace stepladder::all_reduce

// The ring with messages in another format, for fp16_ring, bf16_ring and lossless_ring.
//
//     reduce-scatter  each hop decodes the received sum, adds its values in fp32 and encodes the
//                     result: p encodings of each element, the last one on the rank that owns it
//     all-gather      the encoded sums travel on unchanged; each rank decodes them
//
// Identical bits: all ranks decode the same message, also the rank that encoded it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/all_reduce/mpi/compressed/messages.hpp"
#include "kernels/all_reduce/mpi/group.hpp"
#include "kernels/all_reduce/mpi/reduce.hpp"
#include "kernels/all_reduce/ring_schedule.hpp"
#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {

// Codec: constructed with the length of the longest chunk.
//     capacity()                              bytes of the longest message
//     encode(values, count, message)          the bytes of the message
//     decode(message, bytes, values, count)
//     add_and_encode(received, bytes, values, sum, count, message)
//                                             the bytes of the message with received + values;
//                                             sum: [count] workspace, may be values
template <class Codec>
class CompressedRing final : public Plan {
 public:
  CompressedRing(const Problem& problem, const Resources& resources)
      : problem_(problem),
        group_(problem, resources),
        codec_(problem.count / group_.ranks() + 1),
        outgoing_(aligned_array<std::byte>(codec_.capacity())),
        incoming_(aligned_array<std::byte>(codec_.capacity())) {}

  void run(const Operands& o) override {
    const int last = group_.ranks() - 1;
    if (last == 0) return copy(o.input, o.output, problem_.count);
    const Chunk first = chunk(group_.rank());
    std::int64_t length = codec_.encode(o.input + first.first, first.count, outgoing_.get());
    for (int step = 0; step < last; ++step) {
      const std::int64_t received = exchange(length);
      const Chunk in = chunk(reduce_scatter_chunk(group_.rank(), step));
      const float* values = o.input + in.first;
      float* sum = o.output + in.first;
      if (step < last - 1 || problem_.operation == Operation::sum) {
        length = codec_.add_and_encode(incoming_.get(), received, values, sum, in.count,
                                       outgoing_.get());
        continue;
      }
      codec_.add(incoming_.get(), received, values, sum, in.count);
      divide(sum, in.count, static_cast<float>(group_.ranks()));
      length = codec_.encode(sum, in.count, outgoing_.get());
    }
    const Chunk own = chunk(group_.rank() + 1);
    codec_.decode(outgoing_.get(), length, o.output + own.first, own.count);
    for (int step = 0; step < last; ++step) {
      length = exchange(length);
      const Chunk in = chunk(all_gather_chunk(group_.rank(), step));
      codec_.decode(incoming_.get(), length, o.output + in.first, in.count);
      std::swap(incoming_, outgoing_);
    }
  }

 private:
  Chunk chunk(int index) const { return chunk_of({0, problem_.count}, group_.ranks(), index); }
  std::int64_t exchange(std::int64_t length) const {
    return exchange_bytes(group_, {outgoing_.get(), length, group_.next()},
                          {incoming_.get(), codec_.capacity(), group_.previous()});
  }

  Problem problem_;
  Group group_;
  Codec codec_;
  AlignedArray<std::byte> outgoing_, incoming_;  // [codec_.capacity()]
};

}  // namespace stepladder::all_reduce

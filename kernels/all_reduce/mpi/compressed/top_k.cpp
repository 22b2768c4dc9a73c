// Sparse all-reduce with error feedback: each rank sends the 1/64 of its elements that have the
// largest magnitudes, as indices and values, and adds the others to its next input (Stich,
// Cordonnier and Jaggi, Sparsified SGD with memory, 2018). The selections of different ranks
// differ, so their sum cannot be reduced in chunks of fixed length: all ranks gather them all.
//
//     T = (p-1) (alpha + 8 k beta) + c n + p k s    k = n / 4 / 64 elements; c: to select a byte;
//                                                   s: to add an element at a random place
//
// A rank sends (p-1) n / 32 bytes, p / 64 of the ring's: from 64 ranks on the ring sends less.
//
// Identical bits: all ranks add the same selections in the order of the ranks.
#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/all_reduce/mpi/compressed/largest_elements.hpp"
#include "kernels/all_reduce/mpi/compressed/messages.hpp"
#include "kernels/all_reduce/mpi/group.hpp"
#include "kernels/all_reduce/mpi/reduce.hpp"
#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/links.hpp"
#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {
namespace {

std::int64_t indexable(std::int64_t count) {
  if (count > std::numeric_limits<std::uint32_t>::max())
    throw Unsupported("its indices have 32 bits");
  return count;
}

class TopK final : public Plan {
 public:
  TopK(const Problem& problem, const Resources& resources)
      : problem_(problem),
        group_(problem, resources),
        k_(top_k_of(indexable(problem.count))),
        largest_(problem.count),
        residual_(aligned_array<float>(problem.count)),
        messages_(aligned_array<std::byte>(bytes() * group_.ranks())) {
    std::fill_n(residual_.get(), problem.count, 0.0f);
  }

  void run(const Operands& o) override {
    const int ranks = group_.ranks();
    if (ranks == 1) return copy(o.input, o.output, problem_.count);
    const int rank = group_.rank();
    largest_.take(o.input, residual_.get(), problem_.count, k_, indices(rank), values(rank));
    for (int step = 0; step < ranks - 1; ++step)
      exchange_bytes(group_, {message((rank + ranks - step) % ranks), bytes(), group_.next()},
                     {message((rank + ranks - 1 - step) % ranks), bytes(), group_.previous()});
    std::fill_n(o.output, problem_.count, 0.0f);
    for (int r = 0; r < ranks; ++r)
      for (std::int64_t i = 0; i < k_; ++i) o.output[indices(r)[i]] += values(r)[i];
    if (problem_.operation == Operation::mean)
      divide(o.output, problem_.count, static_cast<float>(ranks));
  }

 private:
  // The selection of a rank: k indices, then k values.
  std::int64_t bytes() const { return 8 * k_; }
  std::byte* message(int rank) const { return messages_.get() + rank * bytes(); }
  std::uint32_t* indices(int rank) const { return reinterpret_cast<std::uint32_t*>(message(rank)); }
  float* values(int rank) const { return reinterpret_cast<float*>(message(rank) + 4 * k_); }

  Problem problem_;
  Group group_;
  std::int64_t k_;
  LargestElements largest_;
  AlignedArray<float> residual_;      // [count]
  AlignedArray<std::byte> messages_;  // [ranks][bytes()]
};

// Measured, in roundings to bf16 in the caches: 13 to select, 0.6 for the zeros, 9 to add one
// element at a random place, and 76 kB for the histogram of a selection.
double cost(const CommunicationCost& c) {
  const double selected = c.n / top_k_share;  // bytes of the values
  const double histogram = 76e3;
  return (c.p - 1) * c.flat().shift(2 * selected) +
         c.l.code * (histogram + 13.6 * c.n + 9 * c.p * selected);
}

constexpr VariantInfo info{
    .name = "top_k",
    .technique = Technique::mpi,
    .builds_on = "ring",
    .adds = "only the 1/64 of largest magnitude is sent; the others are added to the next input",
    .idea = Idea::compression,
    .encoded_share = 2.0 / 64,
    .gathers = true,
    .contraction = 1.0 / 64,
};

const Registration registration{info, make_plan<AllReduce, TopK>, cost};

}  // namespace
}  // namespace stepladder::all_reduce

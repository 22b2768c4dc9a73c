// Ranks at distance 1, 2, 4, … exchange their vectors and both add: after round k every rank has
// the sum of its block of 2^(k+1) ranks. log2 p rounds replace 2 (p-1) steps, and each sends the
// whole vector: the best choice for short vectors.
//
//     rank    0   1   2   3
//     k = 0   0+1 0+1 2+3 2+3        0 <-> 1, 2 <-> 3
//     k = 1   all all all all        0 <-> 2, 1 <-> 3
//
// If p is not a power of two, let q be the largest power of two below it. Each rank r >= q first
// sends its vector to rank r - q, then waits, and receives the result at the end.
//
//     T = log2 p (alpha + n beta + n gamma)                                        p = q
//     T = log2 q (alpha + n beta + n gamma) + 2 (alpha + n beta) + n gamma         q < p < 2q
//
// (Thakur, Rabenseifner and Gropp, 2005.) The README proves that all ranks have identical bits.
#include <bit>
#include <cmath>

#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/all_reduce/mpi/group.hpp"
#include "kernels/all_reduce/mpi/reduce.hpp"
#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/links.hpp"
#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {
namespace {

class RecursiveDoubling final : public Plan {
 public:
  RecursiveDoubling(const Problem& problem, const Resources& resources)
      : problem_(problem),
        group_(problem, resources),
        doubling_ranks_(static_cast<int>(std::bit_floor(static_cast<unsigned>(group_.ranks())))),
        received_(aligned_array<float>(group_.rank() < doubling_ranks_ ? problem.count : 0)) {}

  void run(const Operands& o) override {
    const std::int64_t count = problem_.count;
    const int rank = group_.rank();
    const int ranks = group_.ranks();
    if (rank >= doubling_ranks_) {
      group_.send(o.input, count, rank - doubling_ranks_);
      group_.receive(o.output, count, rank - doubling_ranks_);
      return;
    }

    // The first addition reads the input and writes the output, which saves a copy.
    const float* sum = o.input;
    const bool has_extra = rank + doubling_ranks_ < ranks;
    if (has_extra) {
      group_.receive(received_.get(), count, rank + doubling_ranks_);
      add(sum, received_.get(), o.output, count);
      sum = o.output;
    }
    for (int distance = 1; distance < doubling_ranks_; distance *= 2) {
      const int partner = rank ^ distance;
      group_.exchange({sum, count, partner}, {received_.get(), count, partner});
      add(sum, received_.get(), o.output, count);
      sum = o.output;
    }
    copy(sum, o.output, count);  // one rank: nothing was added
    if (problem_.operation == Operation::mean) divide(o.output, count, ranks);
    if (has_extra) group_.send(o.output, count, rank + doubling_ranks_);
  }

 private:
  Problem problem_;
  Group group_;
  int doubling_ranks_;            // q: the largest power of two not above the number of ranks
  AlignedArray<float> received_;  // [count], empty on ranks from q on
};

// Partners at distances below g share a node; an extra rank is q away.
double cost(const CommunicationCost& c) {
  const double q = std::exp2(std::floor(std::log2(c.p)));
  double seconds = 0;
  for (double distance = 1; distance < q; distance *= 2) {
    const LinkCosts& link = distance < c.g ? c.l.within : c.l.between;
    seconds += link.swap(c.n) + c.l.add(c.n);
  }
  return q == c.p ? seconds : seconds + 2 * c.flat().swap(c.n) + c.l.add(c.n);
}

constexpr VariantInfo info{
    .name = "recursive_doubling",
    .technique = Technique::mpi,
    .builds_on = "gather_broadcast",
    .adds = "ranks at distance 1, 2, 4, ... exchange vectors and both add: log2 p rounds",
    .idea = Idea::algorithm,
};

const Registration registration{info, make_plan<AllReduce, RecursiveDoubling>, cost};

}  // namespace
}  // namespace stepladder::all_reduce

// Rabenseifner's algorithm: partners at distance 1, 2, 4, … exchange halves in place of whole
// vectors. Each keeps one half, adds the partner's values to it, and halves it again in the next
// round; then the same partners in reverse order exchange the completed parts.
//
//     p = 4    rank     0      1      2      3       quarters of the vector
//              0 <-> 1  q0 q1  q2 q3  q0 q1  q2 q3   sums of two ranks
//              0 <-> 2  q0     q2     q1     q3      sums of all: back the same way
//
//     T = 2 log2 p alpha + 2 (p-1)/p n beta + (p-1)/p n gamma        p ranks, n bytes
//
// The steps of recursive_doubling, twice, with the traffic of a ring. If p is not a power of two,
// the ranks beyond the largest power of two q first send their vectors to rank r - q and receive
// the result at the end: p = q in the formula, plus 2 (alpha + n beta) + n gamma.
//
// Identical bits: each part is completed and divided on one rank and then copied.
#include <array>
#include <bit>
#include <cmath>

#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/all_reduce/mpi/group.hpp"
#include "kernels/all_reduce/mpi/reduce.hpp"
#include "kernels/all_reduce/ring_schedule.hpp"
#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/links.hpp"
#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {
namespace {

class Rabenseifner final : public Plan {
 public:
  Rabenseifner(const Problem& problem, const Resources& resources)
      : problem_(problem),
        group_(problem, resources),
        halving_ranks_(static_cast<int>(std::bit_floor(static_cast<unsigned>(group_.ranks())))) {
    Chunk whole{0, problem.count};
    for (int distance = 1; distance < halving_ranks_; distance *= 2) {
      const int half = (group_.rank() & distance) != 0 ? 1 : 0;
      rounds_[static_cast<std::size_t>(count_++)] = {
          group_.rank() ^ distance, chunk_of(whole, 2, half), chunk_of(whole, 2, 1 - half)};
      whole = chunk_of(whole, 2, half);
    }
    own_ = whole;
    if (group_.rank() < halving_ranks_)
      received_ = aligned_array<float>(has_extra() ? problem.count : problem.count / 2 + 1);
  }

  void run(const Operands& o) override {
    const std::int64_t count = problem_.count;
    if (group_.rank() >= halving_ranks_) {
      group_.send(o.input, count, group_.rank() - halving_ranks_);
      group_.receive(o.output, count, group_.rank() - halving_ranks_);
      return;
    }

    // The first addition reads the input and writes the output, which saves a copy.
    const float* sum = o.input;
    if (has_extra()) {
      group_.receive(received_.get(), count, group_.rank() + halving_ranks_);
      add(sum, received_.get(), o.output, count);
      sum = o.output;
    }
    for (int k = 0; k < count_; ++k) {
      const auto& [partner, kept, sent] = rounds_[static_cast<std::size_t>(k)];
      group_.exchange({sum + sent.first, sent.count, partner},
                      {received_.get(), kept.count, partner});
      add(sum + kept.first, received_.get(), o.output + kept.first, kept.count);
      sum = o.output;
    }
    if (count_ == 0) copy(o.input, o.output, count);  // one rank
    if (problem_.operation == Operation::mean)
      divide(o.output + own_.first, own_.count, group_.ranks());
    for (int k = count_ - 1; k >= 0; --k) {
      const auto& [partner, kept, sent] = rounds_[static_cast<std::size_t>(k)];
      group_.exchange({o.output + kept.first, kept.count, partner},
                      {o.output + sent.first, sent.count, partner});
    }
    if (has_extra()) group_.send(o.output, count, group_.rank() + halving_ranks_);
  }

 private:
  struct Round {
    int partner;
    Chunk kept, sent;
  };
  bool has_extra() const { return group_.rank() + halving_ranks_ < group_.ranks(); }

  Problem problem_;
  Group group_;
  int halving_ranks_;  // q: the largest power of two not above the number of ranks
  int count_ = 0;      // rounds: log2 q
  std::array<Round, 31> rounds_{};
  Chunk own_{};
  AlignedArray<float> received_;
};

// Round k exchanges n / 2^(k+1) bytes at distance 2^k, in both halves; an extra rank is q away.
double cost(const CommunicationCost& c) {
  const double q = std::exp2(std::floor(std::log2(c.p)));
  double seconds = 0;
  for (double distance = 1; distance < q; distance *= 2) {
    const double part = c.n / (2 * distance);
    const LinkCosts& link = distance < c.g ? c.l.within : c.l.between;
    seconds += 2 * link.swap(part) + c.l.add(part);
  }
  return q == c.p ? seconds : seconds + 2 * c.flat().swap(c.n) + c.l.add(c.n);
}

constexpr VariantInfo info{
    .name = "rabenseifner",
    .technique = Technique::mpi,
    .builds_on = "recursive_doubling",
    .adds = "partners exchange halves, quarters, ... in place of whole vectors, and gather them",
    .idea = Idea::algorithm,
};

const Registration registration{info, make_plan<AllReduce, Rabenseifner>, cost};

}  // namespace
}  // namespace stepladder::all_reduce

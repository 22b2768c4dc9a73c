// Low-rank all-reduce with error feedback: the vector is a matrix M of up to 256 rows, of which
// each rank sends P = M Qᵀ and Q = Pᵀ M of rank 4 (low_rank.hpp; Vogels et al., PowerSGD, 2019).
// Both are linear in M, so an ordinary all-reduce adds them. The next call starts with this Q,
// which makes the calls a power iteration, and adds what M - P Q loses to its input.
//
//     T = 4 (p-1) alpha + 2 (p-1)/p n/64 beta + 4 c n    long vectors; c: a product, per byte
//
// Each rank subtracts its own P Pᵀ M from its M, not the mean of all ranks: its residual holds
// only what it has not sent.
//
// Identical bits: the ring gives all ranks the same P and Q, and all compute P Q by the same code.
#include <algorithm>

#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/all_reduce/mpi/compressed/low_rank.hpp"
#include "kernels/all_reduce/mpi/group.hpp"
#include "kernels/all_reduce/mpi/reduce.hpp"
#include "kernels/all_reduce/mpi/ring_steps.hpp"
#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/links.hpp"
#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {
namespace {

class PowerSgd final : public Plan {
 public:
  PowerSgd(const Problem& problem, const Resources& resources)
      : problem_(problem),
        group_(problem, resources),
        shape_(problem.count),
        residual_(aligned_array<float>(problem.count)),
        p_(aligned_array<float>(shape_.p_length())),
        q_(aligned_array<float>(shape_.q_length())),
        received_(aligned_array<float>(
            longest_chunk(group_, std::max(shape_.p_length(), shape_.q_length())))) {
    std::fill_n(residual_.get(), problem.count, 0.0f);
    start_low_rank(shape_, q_.get());
  }

  void run(const Operands& o) override {
    if (group_.ranks() == 1) return copy(o.input, o.output, problem_.count);
    left_factor(shape_, o.input, residual_.get(), q_.get(), p_.get());
    sum(p_.get(), shape_.p_length());
    orthonormalize(shape_, ++calls_, p_.get());
    right_factor(shape_, residual_.get(), p_.get(), q_.get());
    subtract_product(shape_, p_.get(), q_.get(), residual_.get());
    sum(q_.get(), shape_.q_length());
    low_rank_product(shape_, p_.get(), q_.get(), o.output);
    if (problem_.operation == Operation::mean)
      divide(o.output, problem_.count, static_cast<float>(group_.ranks()));
  }

 private:
  void sum(float* values, std::int64_t count) const {
    reduce_scatter(group_, values, values, count, received_.get());
    all_gather(group_, values, count);
  }

  Problem problem_;
  Group group_;
  LowRankShape shape_;
  std::uint64_t calls_ = 0;
  AlignedArray<float> residual_;  // [count]
  AlignedArray<float> p_, q_;     // [p_length], [q_length]
  AlignedArray<float> received_;
};

// Measured, in roundings to bf16 in the caches: 11.5 for P, Q, and to subtract and store P Q.
double cost(const CommunicationCost& c) {
  const LowRankShape shape(static_cast<std::int64_t>(c.n / 4));
  const double p = 4 * static_cast<double>(shape.p_length()) / c.p;
  const double q = 4 * static_cast<double>(shape.q_length()) / c.p;
  return (c.p - 1) * (2 * c.flat().shift(p) + c.l.add(p) + 2 * c.flat().shift(q) + c.l.add(q)) +
         11.5 * c.n * c.l.code;
}

constexpr VariantInfo info{
    .name = "power_sgd",
    .technique = Technique::mpi,
    .builds_on = "ring",
    .adds =
        "sends two factors of rank 4 of the vector as a matrix; the rest goes to the next input",
    .idea = Idea::compression,
    .encoded_share = 1.0 / 64,
    .contraction = 1.0 / 128,
};

const Registration registration{info, make_plan<AllReduce, PowerSgd>, cost};

}  // namespace
}  // namespace stepladder::all_reduce

// Rows of C, one strip per rank. A strip of C needs the same strip of op(A), which the rank has,
// and all of B, of which it has 1/p: an all-gather of B comes first, then one packed product.
//
//     T = 2 m n k / p gamma + (p-1) (alpha + k n / p beta)      p ranks, a ring all-gather
//
// alpha: seconds per message, beta: per float sent, gamma: per FLOP. A rank receives (p-1)/p k n
// floats, however many ranks there are: the product becomes p times shorter, the communication does
// not. Each rank also stores the whole of B.
#include <limits>
#include <optional>
#include <vector>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/simd.hpp"
#include "kernels/common/mpi.hpp"
#include "kernels/matmul/cpu/packed/packed_product.hpp"
#include "kernels/matmul/distribution.hpp"

namespace stepladder::matmul {
namespace {

class MpiRows final : public Plan {
 public:
  MpiRows(const Problem& problem, const Resources& resources)
      : communicator_(communicator_of(resources)) {
    const std::int64_t size_of_b = problem.k * problem.n;
    if (size_of_b > std::numeric_limits<int>::max())
      throw Unsupported("MPI_Allgatherv takes positions below 2^31");
    const std::int64_t width = problem.transpose_b ? problem.k : problem.n;  // of the stored B
    for (int rank = 0; rank < problem.ranks; ++rank) {
      const Range rows = blocks_by_rows(problem, rank).b.rows;
      firsts_.push_back(static_cast<int>(rows.begin * width));
      counts_.push_back(static_cast<int>((rows.end - rows.begin) * width));
    }
    MPI_Comm_rank(communicator_, &rank_);
    b_ = aligned_array<float>(size_of_b);
    const Block c = blocks_by_rows(problem, rank_).c;
    if (const std::int64_t rows = c.rows.end - c.rows.begin; rows > 0)
      product_.emplace(Problem{.m = rows,
                               .n = problem.n,
                               .k = problem.k,
                               .transpose_a = problem.transpose_a,
                               .transpose_b = problem.transpose_b});
  }

  void run(const Operands& o) override {
    MPI_Allgatherv(o.b, counts_[static_cast<std::size_t>(rank_)], MPI_FLOAT, b_.get(),
                   counts_.data(), firsts_.data(), MPI_FLOAT, communicator_);
    if (!product_) return;  // more ranks than rows
    const Problem& p = product_->computed();
    product_->multiply({.a = o.a, .b = b_.get(), .c = o.c}, {0, p.m}, {0, p.n});
  }

 private:
  MPI_Comm communicator_;
  int rank_ = 0;
  std::vector<int> firsts_, counts_;        // [rank], of the strips of B
  AlignedArray<float> b_;                   // the whole of B, as it is stored
  std::optional<PackedProduct<>> product_;  // of the strip of this rank
};

constexpr VariantInfo info{
    .name = "mpi_rows",
    .technique = Technique::mpi,
    .builds_on = "packed",
    .adds = "a strip of the rows of C per rank, after an all-gather of B",
    .idea = Idea::processes,
    .isa = build_isa,
    .over_ranks = true,
};

const Registration registration{info, make_plan<Matmul, MpiRows>};

}  // namespace
}  // namespace stepladder::matmul

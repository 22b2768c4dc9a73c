// Checks the products over MPI on the ranks that mpirun starts, with the verification of `verify`:
//     mpirun -np 4 build/matmul_mpi_test
// and that it finds products that are wrong on purpose.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "kernels/common/mpi.hpp"
#include "kernels/matmul/distribution.hpp"
#include "tests/mpi/broken_variants.hpp"

namespace stepladder::matmul {
namespace {

using test::expect;

std::int64_t size(Range range) { return range.end - range.begin; }
std::int64_t size(const Block& block) { return size(block.rows) * size(block.columns); }

// Correct, and slow: every rank collects A and B from the blocks of a grid. The broken ones below
// change one of its parts.
class Collected : public Plan {
 public:
  Collected(const Problem& problem, const Resources& resources)
      : problem_(problem), communicator_(communicator_of(resources)) {
    MPI_Comm_rank(communicator_, &rank_);
  }
  void run(const Operands& o) override {
    const Problem& p = problem_;
    const std::vector<float> a = collect(o.a, &Blocks::a, p.transpose_a ? p.m : p.k, p.m * p.k),
                             b = collect(o.b, &Blocks::b, p.transpose_b ? p.k : p.n, p.k * p.n);
    std::vector<double> c(static_cast<std::size_t>(p.m * p.n)), magnitude(c.size());
    reference(p, {.a = a.data(), .b = b.data(), .c = nullptr}, c.data(), magnitude.data());
    const Block own = blocks_by_grid(p, rank_).c;
    float* at = o.c;
    for (std::int64_t i = own.rows.begin; i < own.rows.end; ++i)
      for (std::int64_t j = own.columns.begin; j < own.columns.end; ++j)
        *at++ = static_cast<float>(c[static_cast<std::size_t>(i * p.n + j)]);
    spoil(o);
  }

 protected:
  virtual int owner_of(int rank) const { return rank; }  // whose block is put where rank's belongs
  virtual void spoil(const Operands&) {}
  Block own_c() const { return blocks_by_grid(problem_, rank_).c; }

  Problem problem_;
  MPI_Comm communicator_;
  int rank_ = 0;

 private:
  std::vector<float> collect(const float* own, Block Blocks::*of, std::int64_t stride,
                             std::int64_t count) const {
    std::vector<float> whole(static_cast<std::size_t>(count));
    for (int rank = 0; rank < problem_.ranks; ++rank) {
      const Block block = blocks_by_grid(problem_, rank).*of;
      const int from = owner_of(rank);
      std::vector<float> values(static_cast<std::size_t>(
          std::max(size(block), size(blocks_by_grid(problem_, from).*of))));
      if (from == rank_) std::copy_n(own, size(blocks_by_grid(problem_, from).*of), values.begin());
      MPI_Bcast(values.data(), static_cast<int>(values.size()), MPI_FLOAT, from, communicator_);
      const float* value = values.data();
      for (std::int64_t row = block.rows.begin; row < block.rows.end; ++row)
        for (std::int64_t column = block.columns.begin; column < block.columns.end; ++column)
          whole[static_cast<std::size_t>(row * stride + column)] = *value++;
    }
    return whole;
  }
};

class BlocksOfTheNext final : public Collected {
  using Collected::Collected;
  int owner_of(int rank) const override { return (rank + 1) % problem_.ranks; }
};

class LastElementMissing final : public Collected {
  using Collected::Collected;
  void spoil(const Operands& o) override {
    // of one rank only
    if (rank_ == problem_.ranks - 1 && size(own_c()) > 0) o.c[size(own_c()) - 1] += 1;
  }
};

class WritesBeyondItsBlock final : public Collected {
  using Collected::Collected;
  void spoil(const Operands& o) override { o.c[size(own_c())] = 0; }
};

class ChangesItsBlockOfB final : public Collected {
  using Collected::Collected;
  void spoil(const Operands& o) override { const_cast<float*>(o.b)[0] += 1; }
};

// Fewer rows, columns and steps of K than ranks; parts that differ by one; panels of 256 that end
// inside a rank's part of K, and parts of K of several panels.
std::vector<Problem> problems(int ranks) {
  std::vector<Problem> all;
  for (const bool transpose_a : {false, true})
    for (const bool transpose_b : {false, true})
      for (const Problem& size : {Problem{1, 1, 1},
                                  {2, 3, 5},
                                  {37, 5, 11},
                                  {5, 64, 37},
                                  {64, 100, 300},
                                  {70, 33, 1030},
                                  {33, 130, 1537}}) {
        Problem problem = size;
        problem.transpose_a = transpose_a;
        problem.transpose_b = transpose_b;
        problem.ranks = ranks;
        all.push_back(problem);
      }
  return all;
}

void check_variants(int ranks) {
  int over_ranks = 0;
  for (const detail::Entry& entry : detail::entries(Matmul::name)) {
    if (entry.factory == nullptr || entry.info->place != Place::cpu ||
        entry.info->technique == Technique::vendor || !cpu_has(entry.info->isa))
      continue;
    const std::string name = full_name(*entry.info);
    const Variant variant{Matmul::name, name, entry.info, entry, ""};
    over_ranks += entry.info->over_ranks;
    const bool runs = entry.info->over_ranks == (ranks > 1);
    if (runs && ranks == 1) continue;  // the other tests
    std::vector<Problem> all = problems(ranks);
    if (!runs) all.resize(1);  // unavailable for each
    for (const Problem& problem : all) {
      const Verdict verdict = test::verdict_on_ranks<Matmul>(problem, variant);
      expect(verdict.outcome == (runs ? Outcome::passed : Outcome::unavailable),
             name + ", " + direction(problem) + " of " + shape(problem) + ": " + verdict.reason);
      expect(mpi_session().max(verdict.error_ratio) == verdict.error_ratio,
             name + " has the largest error ratio of all ranks");
    }
    Problem with_bias = problems(ranks).back();
    with_bias.epilogue = Epilogue::bias;
    if (entry.info->over_ranks)
      expect(test::verdict_on_ranks<Matmul>(with_bias, variant).outcome == Outcome::unavailable,
             name + " with a bias");
  }
  expect(over_ranks >= 3, "there are products over MPI");
}

// Blocks are allocated again where the number of copies changes.
void check_copies(int ranks) {
  Problem problem{5, 64, 37};
  problem.ranks = ranks;
  const detail::Entry* entry = nullptr;
  for (const detail::Entry& one : detail::entries(Matmul::name))
    if (one.factory != nullptr && one.info->over_ranks && entry == nullptr) entry = &one;
  if (ranks == 1 || entry == nullptr) return;
  const std::string name = full_name(*entry->info);
  const Variant variant{Matmul::name, name, entry->info, *entry, ""};
  const std::unique_ptr<Case> owned = make_case<Matmul>(problem, "test", "test");
  for (const std::size_t copies : {1, 3}) {
    owned->allocate(copies, nullptr);
    owned->fill(Tier::accuracy, 1);
    const auto plan = owned->plan(variant, {1, mpi_session().communicator()});
    owned->reset_all();
    plan->prepare();
    for (std::size_t copy = 0; copy < copies; ++copy) {
      plan->run(copy);
      expect(owned->check(*entry->info, copy).passed, name + " in each copy of its blocks");
    }
  }
}

void check_broken_variants(int ranks) {
  for (const bool transposed : {false, true}) {
    const Problem problem{.m = 29,
                          .n = 31,
                          .k = 37,
                          .transpose_a = transposed,
                          .transpose_b = transposed,
                          .ranks = ranks};
    test::check_broken<Matmul, Collected>("correct", problem, "");
    test::check_broken<Matmul, BlocksOfTheNext>("blocks of the next", problem, "c[");
    test::check_broken<Matmul, LastElementMissing>("last element", problem, "c[");
    test::check_broken<Matmul, WritesBeyondItsBlock>("beyond its block", problem,
                                                     "c was written out of bounds");
    test::check_broken<Matmul, ChangesItsBlockOfB>("changes B", problem, "input b was changed");
  }
}

}  // namespace
}  // namespace stepladder::matmul

int main() {
  using namespace stepladder;
  return test::run_checks([](int ranks) {
    matmul::check_variants(ranks);
    matmul::check_copies(ranks);
    if (ranks > 1) matmul::check_broken_variants(ranks);
  });
}

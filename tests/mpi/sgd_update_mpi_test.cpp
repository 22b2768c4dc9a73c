// Checks the updates over MPI on the ranks that mpirun starts, with the verification of `verify`:
//     mpirun -np 4 build/sgd_update_mpi_test
// and that it finds updates that are wrong on purpose.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "kernels/common/cpu/partition.hpp"
#include "kernels/common/mpi.hpp"
#include "kernels/sgd_update/sgd_update.hpp"
#include "tests/mpi/broken_variants.hpp"

namespace stepladder::sgd_update {
namespace {

using test::expect;

// Correct, and slow; the broken ones below change one of its parts.
class Sharded : public Plan {
 public:
  Sharded(const Problem& problem, const Resources& resources)
      : problem_(problem),
        communicator_(communicator_of(resources)),
        mean_(static_cast<std::size_t>(problem.count)) {
    MPI_Comm_rank(communicator_, &rank_);
    for (int rank = 0; rank < problem.ranks; ++rank) {
      const Range part = partition(problem.count, problem.ranks, rank);
      firsts_.push_back(static_cast<int>(part.begin));
      counts_.push_back(static_cast<int>(part.end - part.begin));
    }
  }
  void run(const Operands& o) override {
    reduce(o);
    update(o);
    gather(o);
  }

 protected:
  virtual void reduce(const Operands& o) {
    MPI_Allreduce(o.gradient, mean_.data(), static_cast<int>(problem_.count), MPI_FLOAT, MPI_SUM,
                  communicator_);
    for (float& g : mean_) g /= static_cast<float>(problem_.ranks);
  }
  virtual void update(const Operands& o) {
    for (int i = firsts_[here()]; i < firsts_[here()] + counts_[here()]; ++i) update(o, i);
  }
  virtual void gather(const Operands& o) {
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, o.weights, counts_.data(), firsts_.data(),
                   MPI_FLOAT, communicator_);
  }
  void update(const Operands& o, int i) const {
    const int kept = states(problem_.optimizer);
    const Element e = reference(problem_, o.weights[i], mean_[static_cast<std::size_t>(i)],
                                kept >= 1 ? o.state1[i] : 0, kept >= 2 ? o.state2[i] : 0,
                                o.learning_rate, o.step);
    o.weights[i] += static_cast<float>(e.change);
    if (kept >= 1) o.state1[i] = static_cast<float>(e.state1);
    if (kept >= 2) o.state2[i] = static_cast<float>(e.state2);
  }
  std::size_t here() const { return static_cast<std::size_t>(rank_); }

  Problem problem_;
  MPI_Comm communicator_;
  int rank_ = 0;
  std::vector<float> mean_;
  std::vector<int> firsts_, counts_;
};

class OwnGradient final : public Sharded {
  using Sharded::Sharded;
  void reduce(const Operands& o) override { std::copy_n(o.gradient, problem_.count, mean_.data()); }
};

class SumOfGradients final : public Sharded {
  using Sharded::Sharded;
  void reduce(const Operands& o) override {
    Sharded::reduce(o);
    for (float& g : mean_) g *= static_cast<float>(problem_.ranks);
  }
};

class NotGathered final : public Sharded {
  using Sharded::Sharded;
  void gather(const Operands&) override {}
};

class StateForgotten final : public Sharded {
  using Sharded::Sharded;
  void update(const Operands& o) override {
    const auto count = static_cast<std::size_t>(problem_.count);
    const std::vector<float> before(o.state1, o.state1 + count);
    Sharded::update(o);
    std::ranges::copy(before, o.state1);
  }
};

// Updates the state of other shards too, by the gradient of this rank.
class StateOfOthers final : public Sharded {
  using Sharded::Sharded;
  void update(const Operands& o) override {
    Sharded::update(o);
    o.state1[rank_ == 0 ? problem_.count - 1 : 0] += 1;
  }
};

// The last rank rounds another way: within the bound, but not the same bits.
class OtherBits final : public Sharded {
  using Sharded::Sharded;
  void gather(const Operands& o) override {
    Sharded::gather(o);
    if (rank_ == problem_.ranks - 1) o.weights[0] = std::nextafter(o.weights[0], 1.0F);
  }
};

// Writes into the gradient, which is the workspace of a careless reduce-scatter.
class ChangesGradient final : public Sharded {
  using Sharded::Sharded;
  void reduce(const Operands& o) override {
    Sharded::reduce(o);
    std::ranges::copy(mean_, const_cast<float*>(o.gradient));
  }
};

constexpr Optimizer optimizers[] = {Optimizer::sgd,      Optimizer::momentum, Optimizer::adagrad,
                                    Optimizer::adadelta, Optimizer::rmsprop,  Optimizer::adam};

void check_variants(int ranks) {
  int built = 0;
  for (const detail::Entry& entry : detail::entries(SgdUpdate::name)) {
    if (entry.factory == nullptr || entry.info->place != Place::cpu || !cpu_has(entry.info->isa))
      continue;
    const std::string name = full_name(*entry.info);
    const Variant variant{SgdUpdate::name, name, entry.info, entry, ""};
    built += entry.info->over_ranks;
    for (const Optimizer optimizer : optimizers)
      for (const std::int64_t count : {1, 2, 3, 37, 1000, 65537})
        for (const float decay : {0.0F, 0.5F}) {
          const Problem problem{.optimizer = optimizer,
                                .count = count,
                                .weight_decay = decay,
                                .momentum = 0.5F,
                                .ranks = ranks};
          const Verdict verdict = test::verdict_on_ranks<SgdUpdate>(problem, variant);
          const bool runs = entry.info->over_ranks == (ranks > 1);
          const bool as_expected =
              verdict.outcome == (runs ? Outcome::passed : Outcome::unavailable);
          expect(as_expected, name + ", " + direction(problem) + " of " + shape(problem) + ": " +
                                  verdict.reason);
        }
  }
  expect(built >= 3, "there are updates over MPI");
}

void check_broken_variants(int ranks) {
  for (const Optimizer optimizer : optimizers) {
    const Problem problem{.optimizer = optimizer, .count = 97, .ranks = ranks};
    test::check_broken<SgdUpdate, Sharded>("correct", problem, "");
    test::check_broken<SgdUpdate, OwnGradient>("own gradient", problem, "weights[");
    test::check_broken<SgdUpdate, NotGathered>("not gathered", problem, "weights[");
    test::check_broken<SgdUpdate, ChangesGradient>("changes gradient", problem,
                                                   "input gradient was changed");
    test::check_broken<SgdUpdate, OtherBits>(
        "other bits", problem,
        optimizer == Optimizer::sgd ? "weights[0]" : "the ranks hold different results");
    if (optimizer == Optimizer::sgd || optimizer == Optimizer::momentum)
      test::check_broken<SgdUpdate, SumOfGradients>("sum of gradients", problem, "weights[");
    if (states(optimizer) == 0) continue;
    test::check_broken<SgdUpdate, StateForgotten>("state forgotten", problem,
                                                  "state1 was updated in");
    test::check_broken<SgdUpdate, StateOfOthers>("state of others", problem, "state1[");
  }
}

}  // namespace
}  // namespace stepladder::sgd_update

int main() {
  using namespace stepladder;
  return test::run_checks([](int ranks) {
    sgd_update::check_variants(ranks);
    if (ranks > 1) sgd_update::check_broken_variants(ranks);
  });
}

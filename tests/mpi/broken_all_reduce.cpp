#include "tests/mpi/broken_all_reduce.hpp"

#include <algorithm>
#include <vector>

#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {
namespace {

// The correct all-reduce, which the broken ones modify.
class Base : public Plan {
 public:
  Base(const Problem& problem, const Resources& resources)
      : problem_(problem), communicator_(communicator_of(resources)) {}

 protected:
  void sum(const Operands& o, std::int64_t count) const {
    std::copy_n(o.input, o.input == o.output ? 0 : count, o.output);
    MPI_Allreduce(MPI_IN_PLACE, o.output, static_cast<int>(count), MPI_FLOAT, MPI_SUM,
                  communicator_);
  }
  void average(float* values, std::int64_t count) const {
    if (problem_.operation == Operation::sum) return;
    for (std::int64_t i = 0; i < count; ++i) values[i] /= static_cast<float>(problem_.ranks);
  }
  void reduce(const Operands& o) const {
    sum(o, problem_.count);
    average(o.output, problem_.count);
  }

  Problem problem_;
  MPI_Comm communicator_;
};

class ForgetsLast final : public Base {
 public:
  using Base::Base;
  void run(const Operands& o) override {
    sum(o, problem_.count - 1);
    average(o.output, problem_.count - 1);
  }
};

class Stale final : public Base {
 public:
  using Base::Base;
  void run(const Operands& o) override {
    reduce(o);
    if (first_.empty()) first_.assign(o.output, o.output + problem_.count);
    std::ranges::copy(first_, o.output);
  }

 private:
  std::vector<float> first_;
};

class PastTheEnd final : public Base {
 public:
  using Base::Base;
  void run(const Operands& o) override {
    reduce(o);
    o.output[problem_.count] = 0;
  }
};

class ChangesInput final : public Base {
 public:
  using Base::Base;
  void run(const Operands& o) override {
    reduce(o);
    const_cast<float*>(o.input)[0] += 1;
  }
};

class WrongOnTheLastRank final : public Base {
 public:
  WrongOnTheLastRank(const Problem& problem, const Resources& resources)
      : Base(problem, resources) {
    if (problem.ranks < 2) throw Unsupported("it needs two ranks");
    MPI_Comm_rank(communicator_, &rank_);
  }
  void run(const Operands& o) override {
    reduce(o);
    if (rank_ == problem_.ranks - 1) o.output[problem_.count / 2] += 1;
  }

 private:
  int rank_ = 0;
};

class ForgetsMean final : public Base {
 public:
  ForgetsMean(const Problem& problem, const Resources& resources) : Base(problem, resources) {
    if (problem.ranks < 2) throw Unsupported("the mean over one rank is the sum");
  }
  void run(const Operands& o) override { sum(o, problem_.count); }
};

// Each rank begins its sum with its own vector: correct within rounding, but different on each
// rank.
class OwnOrder final : public Base {
 public:
  OwnOrder(const Problem& problem, const Resources& resources)
      : Base(problem, resources), all_(static_cast<std::size_t>(problem.count * problem.ranks)) {
    if (problem.ranks < 3) throw Unsupported("two values have one sum in either order");
  }
  void run(const Operands& o) override {
    const int count = static_cast<int>(problem_.count);
    MPI_Allgather(o.input, count, MPI_FLOAT, all_.data(), count, MPI_FLOAT, communicator_);
    int rank = 0;
    MPI_Comm_rank(communicator_, &rank);
    std::fill_n(o.output, count, 0.0f);
    for (int r = 0; r < problem_.ranks; ++r)
      for (int i = 0; i < count; ++i) o.output[i] += all_[(rank + r) % problem_.ranks * count + i];
    average(o.output, count);
  }

 private:
  std::vector<float> all_;
};

// Error feedback: C(v) = v / 16, and each rank adds the rest to its next input.
constexpr float part = 1.0f / 16;
constexpr double feedback_contraction = 1 - (1 - part) * (1 - part);

enum class FeedbackFault { none, one_rank_forgets, one_rank_sends_nothing, other_bits_once };

template <FeedbackFault fault>
class Feedback final : public Base {
 public:
  Feedback(const Problem& problem, const Resources& resources)
      : Base(problem, resources),
        residual_(static_cast<std::size_t>(problem.count)),
        sent_(static_cast<std::size_t>(problem.count)) {
    if (fault != FeedbackFault::none && problem.ranks < 2) throw Unsupported("it needs two ranks");
    MPI_Comm_rank(communicator_, &rank_);
  }
  void run(const Operands& o) override {
    const bool wrong = rank_ == problem_.ranks - 1;
    for (std::size_t i = 0; i < sent_.size(); ++i) {
      const float v = o.input[i] + residual_[i];
      sent_[i] = part * v;
      residual_[i] = v - sent_[i];
      if (fault == FeedbackFault::one_rank_forgets && wrong) residual_[i] = 0;
      if (fault == FeedbackFault::one_rank_sends_nothing && wrong) sent_[i] = 0;
    }
    reduce({sent_.data(), o.output});
    if (fault == FeedbackFault::other_bits_once && wrong && ++calls_ == 20) o.output[5] += 1e-6f;
  }

 private:
  int rank_ = 0;
  int calls_ = 0;
  std::vector<float> residual_, sent_;  // [count]
};

template <class PlanClass>
struct Broken {
  explicit Broken(const char* name, double contraction = 0)
      : info{.name = name,
             .technique = Technique::mpi,
             .adds = "a fault",
             .contraction = contraction},
        registration{info, make_plan<BrokenAllReduce, PlanClass>} {}
  const VariantInfo info;
  const stepladder::Registration<BrokenAllReduce> registration;
};

const Broken<ForgetsLast> forgets_last("forgets_last");
const Broken<Stale> stale("stale");
const Broken<PastTheEnd> past_the_end("past_the_end");
const Broken<ChangesInput> changes_input("changes_input");
const Broken<WrongOnTheLastRank> wrong_on_the_last_rank("wrong_on_the_last_rank");
const Broken<ForgetsMean> forgets_mean("forgets_mean");
const Broken<OwnOrder> own_order("own_order");
const Broken<Feedback<FeedbackFault::none>> feedback("feedback", feedback_contraction);
const Broken<Feedback<FeedbackFault::one_rank_forgets>> one_rank_forgets("one_rank_forgets",
                                                                         feedback_contraction);
const Broken<Feedback<FeedbackFault::one_rank_sends_nothing>> one_rank_sends_nothing(
    "one_rank_sends_nothing", feedback_contraction);
const Broken<Feedback<FeedbackFault::other_bits_once>> other_bits_once("other_bits_once",
                                                                       feedback_contraction);

}  // namespace
}  // namespace stepladder::all_reduce

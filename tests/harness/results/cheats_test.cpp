// Rungs that cheat, each in its own way, in the bench: their rows fail and say why.
#include "harness/verify/cheats.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "harness/io/csv.hpp"
#include "harness/io/now.hpp"
#include "harness/results/problem_bench.hpp"
#include "harness/results/result_columns.hpp"
#include "kernels/matmul/matmul.hpp"
#include "kernels/sgd_update/sgd_update.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/verdict.hpp"

namespace stepladder {
namespace {

using matmul::Matmul;
using sgd_update::SgdUpdate;

constexpr int honest_runs = 6;  // more than those that verify a plan

void multiply_row(const matmul::Problem& p, const matmul::Operands& o, std::int64_t i) {
  for (std::int64_t j = 0; j < p.n; ++j) {
    float sum = 0;
    for (std::int64_t l = 0; l < p.k; ++l) sum += o.a[i * p.k + l] * o.b[l * p.n + j];
    o.c[i * p.n + j] = sum;
  }
}
void multiply(const matmul::Problem& p, const matmul::Operands& o) {
  for (std::int64_t i = 0; i < p.m; ++i) multiply_row(p, o, i);
}

class Cheat : public matmul::Plan {
 public:
  explicit Cheat(const matmul::Problem& problem, const Resources& = {}) : problem_(problem) {}

 protected:
  matmul::Problem problem_;
  int runs_ = 0;
};

class ComputesWhenItIsPrepared final : public Cheat {
 public:
  using Cheat::Cheat;
  void prepare(const matmul::Operands&) override { is_prepared_ = true; }
  void run(const matmul::Operands& o) override {
    if (is_prepared_) multiply(problem_, o);
    is_prepared_ = false;
  }

 private:
  bool is_prepared_ = false;
};

// Of every element number `step` of both operands.
std::uint64_t fingerprint(const matmul::Problem& p, const matmul::Operands& o, std::int64_t step) {
  std::uint64_t hash = 1;
  const auto add = [&](const float* values, std::int64_t count) {
    for (std::int64_t i = 0; i < count; i += step) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, &values[i], sizeof bits);
      hash = (hash ^ bits) * 0x100000001b3U;
    }
  };
  add(o.a, p.m * p.k);
  add(o.b, p.k * p.n);
  return hash;
}

// Keeps the results of all operands that it met more often than `often`.
template <std::int64_t step, int often>
class Remembers final : public Cheat {
 public:
  using Cheat::Cheat;
  void run(const matmul::Operands& o) override {
    auto& [met, results] = known_[fingerprint(problem_, o, step)];
    const auto count = problem_.m * problem_.n;
    if (met++ <= often) {
      multiply(problem_, o);
      results.assign(o.c, o.c + count);
    } else {
      std::ranges::copy(results, o.c);
    }
  }

 private:
  std::map<std::uint64_t, std::pair<int, std::vector<float>>> known_;
};

// Leaves the results where they are if the operands are those of the last run.
class LeavesTheResults final : public Cheat {
 public:
  using Cheat::Cheat;
  void run(const matmul::Operands& o) override {
    const std::uint64_t now = fingerprint(problem_, o, 1);
    if (now != last_) multiply(problem_, o);
    last_ = now;
  }

 private:
  std::uint64_t last_ = 0;
};

// Notes what is to be done, until somebody seems to look.
class WorksWhenItIsPrepared final : public Cheat {
 public:
  using Cheat::Cheat;
  void prepare(const matmul::Operands&) override {
    if (pending_) multiply(problem_, *pending_);
    pending_.reset();
  }
  void run(const matmul::Operands& o) override {
    if (++runs_ <= honest_runs)
      multiply(problem_, o);
    else
      pending_ = o;
  }

 private:
  std::optional<matmul::Operands> pending_;
};

class WorksInAnotherThread final : public Cheat {
 public:
  WorksInAnotherThread(const matmul::Problem& problem, const Resources&)
      : Cheat(problem), worker_([this] { work(); }) {}
  ~WorksInAnotherThread() override {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_one();
    worker_.join();
  }
  void run(const matmul::Operands& o) override {
    if (++runs_ <= honest_runs) return multiply(problem_, o);
    const std::lock_guard lock(mutex_);
    pending_ = o;
    changed_.notify_one();
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return ends_ || pending_; });
      if (ends_) return;
      const matmul::Operands o = *pending_;
      pending_.reset();
      lock.unlock();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      lock.lock();
      if (ends_) return;  // the operands may be gone
      multiply(problem_, o);
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<matmul::Operands> pending_;
  bool ends_ = false;
  std::thread worker_;
};

// The whole result in the first runs, and then its first and its last row.
class OmitsTheMiddle final : public Cheat {
 public:
  using Cheat::Cheat;
  void run(const matmul::Operands& o) override {
    if (++runs_ <= honest_runs) return multiply(problem_, o);
    multiply_row(problem_, o, 0);
    multiply_row(problem_, o, problem_.m - 1);
  }
};

// Long runs, of which the third is omitted: the first that is timed.
class OmitsTheThird final : public Cheat {
 public:
  using Cheat::Cheat;
  void run(const matmul::Operands& o) override {
    if (++runs_ == 3) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(110));
    multiply(problem_, o);
  }
};

class LeavesAThreadBehind final : public Cheat {
 public:
  using Cheat::Cheat;
  ~LeavesAThreadBehind() override {
    ends_ = true;
    if (thread_.joinable()) thread_.join();
  }
  void run(const matmul::Operands& o) override {
    multiply(problem_, o);
    if (++runs_ == honest_runs)
      thread_ = std::thread([this] {
        while (!ends_) {
        }
      });
  }

 private:
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

// Omits the update where the gradient is that of the last run.
class UpdatesOnce final : public sgd_update::Plan {
 public:
  UpdatesOnce(const sgd_update::Problem& problem, const Resources&) : problem_(problem) {}
  void run(const sgd_update::Operands& o) override {
    const std::vector<float> gradient(o.gradient, o.gradient + problem_.count);
    if (gradient != last_)
      for (std::int64_t i = 0; i < problem_.count; ++i)
        o.weights[i] -= o.learning_rate * (o.gradient[i] + problem_.weight_decay * o.weights[i]);
    last_ = gradient;
  }

 private:
  sgd_update::Problem problem_;
  std::vector<float> last_;
};

// Honest, on a unit that takes 20 us to wake up where it was idle, as a matrix unit does.
class WakesUp final : public Cheat {
 public:
  static inline double longest_pause = 0;  // seconds

  using Cheat::Cheat;
  void run(const matmul::Operands& o) override {
    for (const double start = now(); start > last_ + longest_pause && now() < start + 20e-6;) {
    }
    multiply(problem_, o);
    last_ = now();
  }

 private:
  double last_ = 0;
};

class BenchCheats : public testing::Test {
 protected:
  // The rows of the variants, by name. None of them has a time unless it is ok.
  template <class Primitive>
  std::map<std::string, std::map<std::string, std::string>> rows(
      const typename Primitive::Problem& problem, const std::vector<Variant>& variants,
      BenchOptions options = {}) {
    stepladder::Run run({.directory = folder / "run", .command = "test", .threads = {}});
    options.measure = {.repetitions = 5, .budget_seconds = 0.1};
    ProblemBench bench(run, options);
    const auto owned = make_case<Primitive>(problem, "s", "p");
    bench.measure(*owned, variants);
    bench.measure_again([](const Case&, double) {});
    run.save();
    std::map<std::string, std::map<std::string, std::string>> found;
    const CsvFile file(folder / "run/summary.csv", summary_columns().names());
    for (const CsvRow& row : file.rows()) {
      auto& values = found[row.text("variant")];
      for (const char* column : {"status", "verified", "reason", "median_s"})
        values[column] = row.text(column);
      EXPECT_EQ(values["status"] == "ok", !values["median_s"].empty());
      EXPECT_EQ(values["status"] == "ok", values["verified"] == "yes");
    }
    return found;
  }

  TemporaryFolder folder;
};

template <class PlanClass>
Variant cheat(const char* name) {
  return unregistered<Matmul>(name, make_plan<Matmul, PlanClass>);
}

// The product is small, so that a repetition has more runs than a cheat needs to meet the same
// operands often, even with sanitizers on a busy machine.
TEST_F(BenchCheats, EachFailsAndSaysWhy) {
  const std::string wrong = "the timed results: c[",
                    remembers = "after the timing: remembers results: ",
                    unwritten = "after the timing: c[";
  // The second reason is that of a busy machine: where the last repetition was replaced, there are
  // no timed results, and the runs after the timing find the fault.
  const std::map<std::string, std::vector<std::string>> reasons = {
      {"computes_when_it_is_prepared", {"exact tier: a later run of the plan: c["}},
      {"omits_the_middle", {wrong, unwritten}},
      {"remembers_all", {remembers}},
      {"remembers_by_a_tenth", {wrong, remembers}},
      {"remembers_what_is_frequent", {remembers}},
      {"works_in_another_thread", {wrong, unwritten}},
      {"works_when_it_is_prepared", {wrong, unwritten}}};
  auto row = rows<Matmul>(
      {.m = 64, .n = 64, .k = 64},
      {cheat<ComputesWhenItIsPrepared>("computes_when_it_is_prepared"),
       cheat<OmitsTheMiddle>("omits_the_middle"), cheat<Remembers<1, 0>>("remembers_all"),
       cheat<Remembers<1, 2>>("remembers_what_is_frequent"),
       cheat<Remembers<10, 0>>("remembers_by_a_tenth"),
       cheat<WorksInAnotherThread>("works_in_another_thread"),
       cheat<WorksWhenItIsPrepared>("works_when_it_is_prepared"),
       unregistered<Matmul>("honest", plan_of<multiply>)});
  EXPECT_EQ(row["honest"]["status"], "ok") << row["honest"]["reason"];
  EXPECT_EQ(row.size(), reasons.size() + 1);
  for (const auto& [name, any_of] : reasons) {
    EXPECT_EQ(row[name]["status"], "failed") << name;
    const std::string& found = row[name]["reason"];
    EXPECT_TRUE(std::ranges::any_of(
        any_of, [&](const std::string& reason) { return found.starts_with(reason); }))
        << name << ": " << found;
  }
}

// If the last repetition is replaced because the machine was busy, its results are missing.
TEST_F(BenchCheats, ResultsThatAreLeftFromTheRunBeforeFail) {
  auto row =
      rows<Matmul>({.m = 96, .n = 96, .k = 96}, {cheat<LeavesTheResults>("leaves_the_results")});
  const std::string reason = row["leaves_the_results"]["reason"];
  EXPECT_TRUE(reason.starts_with("after the timing: remembers results: ") ||
              reason.starts_with("the timed results: c["))
      << reason;
}

TEST_F(BenchCheats, EachOfTheLongRunsHasToWriteResults) {
  const auto row =
      rows<Matmul>({.m = 16, .n = 16, .k = 16}, {cheat<OmitsTheThird>("omits_the_third")});
  const std::string& reason = row.at("omits_the_third").at("reason");
  EXPECT_TRUE(reason.starts_with("the timed results: c[")) << reason;
  EXPECT_TRUE(reason.ends_with("was not written when the call returned")) << reason;
}

TEST_F(BenchCheats, AThreadThatGoesOnFailsTheRungThatStartedItAlone) {
  auto row = rows<Matmul>({.m = 16, .n = 16, .k = 16},
                          {cheat<LeavesAThreadBehind>("leaves_a_thread_behind"),
                           unregistered<Matmul>("honest", plan_of<multiply>)});
  EXPECT_EQ(row["honest"]["status"], "ok") << row["honest"]["reason"];
  EXPECT_EQ(row["leaves_a_thread_behind"]["reason"], "1 of its threads go on after the call");
}

TEST_F(BenchCheats, AnUpdateThatIsOmittedBecauseTheGradientIsTheSameFails) {
  auto row =
      rows<SgdUpdate>({.count = 1000, .weight_decay = 0.5F},
                      {unregistered<SgdUpdate>("updates_once", make_plan<SgdUpdate, UpdatesOnce>)});
  EXPECT_TRUE(
      says(row["updates_once"]["reason"], {"exact tier: a later run of the plan: weights["}));
  EXPECT_EQ(row["updates_once"]["status"], "failed");
}

// As on a busy machine: every 300 us for 150 us, wherever the process is.
class Interruptions {
 public:
  Interruptions() {
    struct sigaction action {};
    action.sa_handler = [](int) {
      const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(150);
      while (std::chrono::steady_clock::now() < end) {
      }
    };
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, &before_);
    const itimerval often{.it_interval = {0, 300}, .it_value = {0, 300}};
    setitimer(ITIMER_REAL, &often, nullptr);
  }
  ~Interruptions() {
    const itimerval never{};
    setitimer(ITIMER_REAL, &never, nullptr);
    sigaction(SIGALRM, &before_, nullptr);
  }
  Interruptions(const Interruptions&) = delete;
  Interruptions& operator=(const Interruptions&) = delete;

 private:
  struct sigaction before_ {};
};

// Its runs count as slow (0 s were measured), so that the turns decide.
TEST(FaultOfPace, InterruptionsAreNotTakenForARungThatRemembers) {
  const auto owned = filled_case<Matmul>({.m = 16, .n = 16, .k = 16});
  const Variant honest = unregistered<Matmul>("honest", plan_of<multiply>);
  const auto runner = owned->plan(honest, {});
  runner->prepare();
  const Interruptions interruptions;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(fault_of_pace(*owned, honest, *runner, 0, 1000), "") << i;
}

// It is idle during two changes of the operands that are timed, and not during one.
TEST(FaultOfPace, AUnitThatWakesUpIsNotTakenForARungThatRemembers) {
  const auto owned = filled_case<Matmul>({.m = 4, .n = 4, .k = 64});
  const Variant honest = cheat<WakesUp>("wakes_up");
  const auto runner = owned->plan(honest, {});
  runner->prepare();
  double timed_change = std::numeric_limits<double>::infinity();
  for (std::uint64_t number = 1; number <= 1000; ++number) {
    const double before = now();
    const double start = now_of_kernel();
    owned->change(*honest.info, 0, number, 16);
    EXPECT_GE(now_of_kernel(), start);
    timed_change = std::min(timed_change, now() - before);
  }
  WakesUp::longest_pause = 1.5 * timed_change;
  EXPECT_EQ(fault_of_pace(*owned, honest, *runner, 0, 1000), "");
}

}  // namespace
}  // namespace stepladder

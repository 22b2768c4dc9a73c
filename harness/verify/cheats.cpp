#include "harness/verify/cheats.hpp"

#include <fmt/format.h>
#include <omp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <mutex>
#include <set>
#include <thread>

#include "harness/io/now.hpp"
#include "harness/ranks/mpi_session.hpp"
#include "harness/verify/verify.hpp"

namespace stepladder {
namespace {

constexpr double longer = 1.5;  // than this ratio is suspicious

class Paced {
 public:
  Paced(Case& problem, const Variant& variant, Runner& runner)
      : problem_(problem), variant_(variant), runner_(runner), over_ranks_(over_ranks(problem)) {}

  // Times `runs` in a row, each after a change of some elements of the operands.
  void run_changed(std::int64_t runs) { measure(changed_, runs, Operands::changed); }
  // The same, but as many elements elsewhere get the values that they have: so the operands are as
  // far away, in caches and in the store buffer, as after a change.
  void run_unchanged(std::int64_t runs) { measure(same_, runs, Operands::touched); }
  void run_alone(std::int64_t runs) { seconds(runs, Operands::unchanged, true); }

  // Seconds of a run: the shortest time with the change less the shortest of the change alone.
  // The minimum of their differences would be wrong: an interrupted change makes one too small.
  double changed() const { return changed_.with_run - changed_.alone; }
  double unchanged() const { return same_.with_run - same_.alone; }

 private:
  enum class Operands { unchanged, touched, changed };
  struct Shortest {
    double with_run = std::numeric_limits<double>::infinity(), alone = with_run;
  };

  void measure(Shortest& shortest, std::int64_t runs, Operands operands) {
    shortest.with_run = std::min(shortest.with_run, seconds(runs, operands, true));
    shortest.alone = std::min(shortest.alone, seconds(runs, operands, false));
  }

  double seconds(std::int64_t runs, Operands operands, bool computes) {
    mpi_session().barrier();
    const double start = now_of_kernel();
    for (std::int64_t i = 0; i < runs; ++i) {
      if (over_ranks_) mpi_session().barrier();  // the others may still read what is changed
      if (operands != Operands::unchanged) ++number_;
      if (operands == Operands::changed)
        problem_.change(*variant_.info, 0, number_, changed_elements);
      if (operands == Operands::touched)
        problem_.touch(*variant_.info, 0, number_, changed_elements);
      if (computes) runner_.run(0);
    }
    if (variant_.info->place == Place::cuda) device()->synchronize();
    return mpi_session().max(now_of_kernel() - start) / static_cast<double>(runs);
  }

  Case& problem_;
  const Variant& variant_;
  Runner& runner_;
  bool over_ranks_;
  std::uint64_t number_ = std::uint64_t{1} << 32U;  // other than those of the repetitions
  Shortest changed_, same_;
};

std::set<pid_t> threads_of_openmp(int threads) {
  std::set<pid_t> found;
  std::mutex one_at_a_time;
#pragma omp parallel num_threads(threads)
  {
    const std::lock_guard lock(one_at_a_time);
    found.insert(static_cast<pid_t>(syscall(SYS_gettid)));
  }
  return found;
}

// Of this process.
std::set<pid_t> all_threads() {
  std::set<pid_t> found;
  std::error_code error;
  for (std::filesystem::directory_iterator i("/proc/self/task", error), end; !error && i != end;
       i.increment(error))
    found.insert(std::stoi(i->path().filename()));
  return found;
}

// Or ready to.
bool is_running(pid_t thread) {
  std::ifstream file(fmt::format("/proc/self/task/{}/stat", thread));  // "4075 (the name) R …"
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::size_t name_end = text.rfind(") ");
  return name_end != std::string::npos && text[name_end + 2] == 'R';
}

std::string judge_pace(Case& problem, const Variant& variant, Runner& runner, double seconds,
                       std::int64_t timed_runs) {
  // Of runs in a row. A matrix unit that was idle takes some microseconds for the first of them.
  constexpr double shortest = 5e-5, longest = 5e-2;
  constexpr double inexact = 2e-7;  // a run after a change
  constexpr double patience = 3;    // before a rung is accused: a disturbance lasts seconds
  constexpr int tries = 3, fewest_turns = 3, turns = 12;
  Paced paced(problem, variant, runner);
  problem.poison_samples(*variant.info, 0);
  paced.run_changed(1);
  const std::string unwritten = problem.poisoned_sample(*variant.info, 0);
  if (mpi_session().max(unwritten.empty() ? 0 : 1) > 0)
    return unwritten.empty() ? "results are missing on another rank" : unwritten;
  const double suspicious = longer * mpi_session().max(seconds) + inexact;
  const auto runs_in = [&](double duration) {
    return static_cast<std::int64_t>(duration / std::max(paced.changed(), 1e-8));
  };
  for (int i = 0; i < tries && paced.changed() > suspicious; ++i) paced.run_changed(1);
  const std::int64_t runs = std::clamp<std::int64_t>(runs_in(shortest), 1, 1000);
  const std::int64_t repeated = std::clamp<std::int64_t>(runs_in(longest), 1, timed_runs);
  const double start = now_of_kernel();
  const auto may_go_on = [&](int turn) {
    return turn < turns || mpi_session().max(now_of_kernel() - start) < patience;
  };
  for (int turn = 0; may_go_on(turn); ++turn) {
    if (paced.changed() <= suspicious) return {};
    if (turn >= fewest_turns && paced.changed() <= longer * paced.unchanged() + inexact) return {};
    for (const auto run : {&Paced::run_changed, &Paced::run_unchanged}) {
      paced.run_alone(repeated);  // a plan may count how often it had them
      (paced.*run)(runs);
    }
  }
  return fmt::format(
      "remembers results: a run takes {:.3g} s on changed operands, and {:.3g} s on those of the "
      "run before",
      paced.changed(), paced.unchanged());
}

}  // namespace

std::string fault_of_pace(Case& problem, const Variant& variant, Runner& runner, double seconds,
                          std::int64_t runs) {
  MpiSession& mpi = mpi_session();
  const auto watch = mpi.watch(variant.name, mpi.ranks() * seconds);
  try {
    return judge_pace(problem, variant, runner, seconds, runs);
  } catch (const std::exception& error) {
    std::string what = fmt::format("threw: {}", error.what());
    if (over_ranks(problem))  // the others may wait for this one
      mpi.abort(fmt::format("{} {}", variant.name, what));
    return what;
  }
}

StartedThreads::StartedThreads() { belong_to(""); }

void StartedThreads::belong_to(const std::string& rung) {
  const std::set<pid_t> all = all_threads();
  std::erase_if(owners_, [&](const auto& entry) { return !all.contains(entry.first); });
  for (const pid_t thread : all) owners_.try_emplace(thread, rung);
}

std::string StartedThreads::fault_of(const std::string& rung, int threads) const {
  constexpr auto limit = std::chrono::seconds(2);
  std::set<pid_t> busy;
  for (const auto& [thread, owner] : owners_)
    if (owner == rung && is_running(thread)) busy.insert(thread);
  if (busy.empty()) return {};
  for (const pid_t thread : threads_of_openmp(std::max(threads, omp_get_max_threads())))
    busy.erase(thread);
  for (const auto end = std::chrono::steady_clock::now() + limit;
       !busy.empty() && std::chrono::steady_clock::now() < end;) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    std::erase_if(busy, [](pid_t thread) { return !is_running(thread); });
  }
  return busy.empty() ? "" : fmt::format("{} of its threads go on after the call", busy.size());
}

}  // namespace stepladder

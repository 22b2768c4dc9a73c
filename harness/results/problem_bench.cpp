#include "harness/results/problem_bench.hpp"

#include <fmt/format.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <thread>

#include "harness/io/glob.hpp"
#include "harness/io/shell.hpp"
#include "harness/measure/drift.hpp"
#include "harness/measure/work_record.hpp"
#include "harness/problem/threads.hpp"
#include "harness/ranks/mpi_session.hpp"
#include "harness/results/bench_writer.hpp"

namespace stepladder {
namespace {

constexpr double slow_seconds = 0.1;        // of one call: fewer repetitions, in fewer visits
constexpr double warm_above = 1;            // of one call: the first takes as long as others
constexpr double checked_once_above = 0.3;  // seconds of one call: one filling
constexpr double large_flops = 1e9;         // of one problem
constexpr double widest_spread = 0.2;       // of the confidence interval, relative to the median
// Half of the 95 % interval of a time beside the other rows: that a ratio of two rows repeats
// within 10 % in another run takes 5 % of each of four times.
constexpr double widest_beside_others = 0.05;

// After its first visit. Such a row is in two visits, with one repetition in the second.
bool is_slow(const BenchRow& row) { return row.summary.median >= slow_seconds; }

bool is_on(const BenchRow& row, Place place) { return row.variant->info->place == place; }

// Whether its operands are in the device's memory and the device's clock times it.
bool is_on_device(const BenchRow& row) { return is_on(row, Place::cuda); }

bool is_first_rung(const BenchRow& row) {
  return row.variant->info->technique == Technique::serial && *row.variant->info->builds_on == '\0';
}

// Of VisitDifferences.
std::string spread_group(const BenchRow& row) {
  return fmt::format("{} {} {}", row.problem->primitive, row.threads, row.problem->ranks);
}

// Whether `library` is what `row` should be compared with.
bool is_vendor_of(const BenchRow& row, const BenchRow& library) {
  const VariantInfo &own = *row.variant->info, &other = *library.variant->info;
  return other.technique == Technique::vendor && library.threads == row.threads &&
         other.precision == own.precision && other.prepacked == own.prepacked &&
         device_of(other) == device_of(own);
}

// And with equal arithmetic: Winograd and FFT, which need fewer multiplications, with a library
// that uses them, other rungs with one that does not.
bool is_equal_vendor_of(const BenchRow& row, const BenchRow& library) {
  const VariantInfo &own = *row.variant->info, &other = *library.variant->info;
  return is_vendor_of(row, library) && own.normwise == other.normwise && !own.chooses_algorithm &&
         !other.chooses_algorithm;
}

std::string problem_of(const ProblemInfo& info) {
  return fmt::format("{}/{}/{}", info.primitive, info.direction, info.name);
}

std::string subject_of(const BenchRow& row) {
  return fmt::format("{}/{}/threads:{}", problem_of(*row.problem), row.variant->name, row.threads);
}

Clock clock_of(const BenchRow& row) {
  if (is_on_device(row)) return Clock::device;
  return row.problem->ranks > 1 ? Clock::ranks : Clock::wall;
}

// Blocks of all small sizes, more than the free lists hold: what is allocated next comes from the
// end of the heap, one block after the other.
std::vector<std::unique_ptr<char[]>> fill_free_lists() {
  constexpr std::size_t each = 256, largest = 1024;
  std::vector<std::unique_ptr<char[]>> blocks;
  blocks.reserve(each * largest / 16);
  for (std::size_t bytes = 8; bytes <= largest; bytes += 16)
    for (std::size_t i = 0; i < each; ++i) blocks.push_back(std::make_unique<char[]>(bytes));
  return blocks;
}

// Blocks of larger sizes, the largest first, so many that they fill what was freed between other
// blocks: malloc looks at the size of each such gap.
std::vector<std::unique_ptr<char[]>> fill_gaps() {
  constexpr std::size_t largest = 1U << 16U, smallest = 1U << 10U, bytes_of_each_size = 1U << 24U;
  std::vector<std::unique_ptr<char[]>> blocks;
  for (std::size_t bytes = largest; bytes >= smallest; bytes /= 2)
    for (std::size_t i = 0; i < bytes_of_each_size / bytes; ++i)
      blocks.emplace_back(new char[bytes]);
  return blocks;
}

// A time depends on the pages that hold the operands, and malloc would take those of the last visit
// again. What it keeps free goes back to the system, and pages are taken meanwhile, another number
// in each visit.
std::unique_ptr<char[]> shift_pages(int visit) {
  constexpr std::size_t page = 4096, most_pages = 8192, stride = 2579;  // co-prime
  malloc_trim(0);
  const std::size_t bytes = page * (static_cast<std::size_t>(visit) * stride % most_pages + 1);
  auto taken = std::make_unique_for_overwrite<char[]>(bytes);
  for (std::size_t i = 0; i < bytes; i += page) taken[i] = 1;
  return taken;
}

// Runs a plan as its graphs do: what it computes is what they compute.
class RecordedRunner final : public Runner {
 public:
  explicit RecordedRunner(std::unique_ptr<Runner> runner) : runner_(std::move(runner)) {}
  void prepare() override { runner_->prepare(); }
  void run(std::size_t copy) override {
    const Task task{[&] { runner_->run(copy); }, {}};
    const std::unique_ptr<Recording> recording = device()->record(std::span(&task, 1));
    recording->launch();
    device()->synchronize();
  }
  std::string remark() const override { return runner_->remark(); }

 private:
  std::unique_ptr<Runner> runner_;
};

Check written(Case& problem, const VariantInfo& info, std::size_t copy) {
  const std::string poisoned = problem.poisoned_sample(info, copy);
  return {.passed = poisoned.empty(), .what = poisoned};
}

// Whether `work` ends in a process of its own, after `prepare`, within `limit` seconds, and leaves
// the heap intact: malloc aborts where it meets a damaged block.
bool survives_alone(double limit, const std::function<void()>& prepare,
                    const std::function<void()>& work) {
  const pid_t child = fork();
  if (child < 0) return true;
  if (child == 0) {
    keep_work_record(nullptr);
    try {
      prepare();
      auto blocks = fill_free_lists();
      work();
      const auto behind = fill_free_lists();
      const auto large_behind = fill_gaps();
      blocks.clear();
    } catch (...) {  // a failure, but no crash
    }
    _exit(0);
  }
  const auto start = std::chrono::steady_clock::now();
  for (int status = 0;;) {
    if (waitpid(child, &status, WNOHANG) == child)
      return WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (interrupted ||
        std::chrono::steady_clock::now() - start > std::chrono::duration<double>(limit))
      kill(child, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace

ProblemBench::ProblemBench(Run& run, BenchOptions options)
    : run_(run), options_(std::move(options)) {
  if (run_.writes()) writer_ = std::make_unique<BenchWriter>(run_.folder());
}

ProblemBench::~ProblemBench() {
  try {
    settle();
  } catch (const std::exception&) {  // the next writer in the folder does it
  }
}

void ProblemBench::settle() {
  if (writer_ != nullptr) writer_->settle();
}

// The rows to measure, `finished`: those that the resumed run has. Variants that have their one row
// because they run nowhere are left out.
std::vector<ProblemBench::Candidate> ProblemBench::plan(const Case& problem,
                                                        const std::vector<Variant>& variants,
                                                        Finished finished) {
  std::vector<Candidate> candidates;
  for (const Variant& variant : variants) {
    if (runs_nowhere_.contains(variant.primitive + " " + variant.name)) continue;
    for (const int threads : variant.info->threaded ? options_.threads : std::vector<int>{1}) {
      Candidate candidate;
      candidate.variant = &variant;
      candidate.problem = &problem.info();
      candidate.threads = threads;
      candidate.cold = is_cold(problem);
      candidate.repeat_command = repeat_command(candidate);
      if (const AfterCrash::Crash* crash = crash_of(candidate)) {
        candidate.set("failed", crash->reason);
        candidates.push_back(std::move(candidate));
        continue;
      }
      const bool is_finished = problems_ < options_.after_crash.finished_problems;
      const bool measured = finished == Finished::left_out &&
                            (is_finished || (writer_ != nullptr && !options_.again &&
                                             writer_->has_measured(candidate)));
      if (mpi_session().broadcast(std::int64_t{measured}) != 0) {
        ++counts_.kept;
        continue;
      }
      if (const AfterCrash::Crash* loss = loss_of(candidate)) candidate.set("failed", loss->reason);
      if (!variant.why_unavailable.empty()) {
        candidate.set("unavailable", variant.why_unavailable);
        candidate.runs_nowhere = true;
      }
      candidates.push_back(std::move(candidate));
    }
  }
  return candidates;
}

const AfterCrash::Crash* ProblemBench::crash_of(const Candidate& candidate) const {
  for (const AfterCrash::Crash& crash : options_.after_crash.crashed)
    if (crash.subject == subject_of(candidate).substr(0, WorkRecord::longest_subject))
      return &crash;
  return nullptr;
}

const AfterCrash::Crash* ProblemBench::loss_of(const Candidate& candidate) const {
  for (const AfterCrash::Crash& loss : options_.after_crash.lost)
    if (loss.subject == problem_of(*candidate.problem).substr(0, WorkRecord::longest_subject))
      return &loss;
  return nullptr;
}

std::string ProblemBench::repeat_command(const Candidate& candidate) const {
  const ProblemInfo& info = *candidate.problem;
  const int ranks = mpi_session().ranks();
  return fmt::format(
      "{}build/stepladder bench {} --variant {} {} --problem {} --direction {} --threads {}{}{}{}",
      ranks > 1 ? fmt::format("mpirun -np {} ", ranks) : "", info.primitive,
      candidate.variant->name,
      options_.problems_argument.empty() ? "--suite " + shell_quoted(info.suite)
                                         : options_.problems_argument,
      shell_quoted(glob_of(info.name)), info.direction, candidate.threads, options_.plugins,
      options_.cold ? " --cold" : "",
      options_.seed != 1 ? fmt::format(" --seed {}", options_.seed) : "");
}

// Gradients that are exchanged were just computed, layer by layer: they are not in the caches. One
// vector reduced again and again would flatter, so processes always rotate their operands.
bool ProblemBench::is_cold(const Case& problem) const {
  return options_.cold || over_ranks(problem);
}

// Null unless the problem is of several processes.
const Links* ProblemBench::links_of(const Case& problem) {
  return over_ranks(problem) ? &run_.links() : nullptr;
}

// Cold operands are rotated through twice the last-level cache of their place, by all ranks that
// share it together.
std::size_t ProblemBench::copies_of(const Case& problem, bool on_device) const {
  if (!is_cold(problem)) return 1;
  const std::size_t cache = on_device ? device()->l2_bytes() : run_.cache_per_rank();
  return static_cast<std::size_t>(
      std::clamp(2.0 * static_cast<double>(cache) / problem.operand_bytes(), 2.0, most_copies));
}

// Of the hosts of all ranks, which decide alike. Collective.
double ProblemBench::least_available_memory() const {
  return -mpi_session().max(-run_.machine().memory_available_bytes);
}

// Empty when the problem fits the memory.
std::string ProblemBench::why_too_large(const Case& problem, std::size_t copies) const {
  const double needed = problem.memory_needed(copies) * mpi_session().ranks();
  const double available = 0.9 * least_available_memory();
  if (needed <= available) return {};
  const std::string& limit = run_.machine().memory_limit;
  return fmt::format("needs {:.1f} GiB; {:.1f} GiB are available{}", needed / 0x1p30,
                     available / 0x1p30, limit.empty() ? "" : " under " + limit);
}

void ProblemBench::measure(Case& problem, const std::vector<Variant>& variants) {
  Visited visited{&problem, plan(problem, variants)};
  visit_ = 0;
  visit(visited);
  visited_.push_back(std::move(visited));
  ++problems_;
  if (WorkRecord* record = kept_work_record()) record->finished_problems = problems_;
}

// A variant that damages the heap lets another one crash. Each runs in a process of its own here,
// and the first that crashes is the one. It fills operands of its own: the references start OpenMP
// teams, which have no threads after fork().
void ProblemBench::find_culprit(Case& problem, const std::vector<Variant>& variants) {
  constexpr double seconds_for_each = 60;
  WorkRecord* record = kept_work_record();
  std::vector<Candidate> candidates = plan(problem, variants, Finished::included);
  std::erase_if(candidates, [](const Candidate& candidate) {
    return !candidate.is_ok() || !is_on(candidate, Place::cpu);
  });
  for (Candidate& candidate : candidates) {
    const std::string name = subject_of(candidate);
    const double limit = seconds_for_each + 3 * expected_seconds(problem);
    const auto prepare = [&] {
      problem.allocate(1, nullptr);
      problem.fill(Tier::accuracy, options_.seed);
    };
    const auto work = [&] {
      verify_one(problem, candidate, "alone");
      candidate.runner.reset();
      problem.release();
    };
    if (survives_alone(limit, prepare, work)) continue;
    if (record != nullptr) set_subject(*record, name);
    return;
  }
}

void ProblemBench::visit(Visited& visited) {
  Case& problem = *visited.problem;
  std::vector<Candidate>& candidates = visited.candidates;
  const bool any = std::any_of(candidates.begin(), candidates.end(),
                               [](const Candidate& candidate) { return candidate.is_ok(); });
  if (over_ranks(problem) && any) run_.refresh_links();
  if (WorkRecord* record = kept_work_record()) set_problem(*record, problem_of(problem.info()));
  for (const bool on_device : {false, true}) {
    Candidates here;
    for (Candidate& candidate : candidates)
      if (is_on_device(candidate) == on_device && candidate.is_ok() && !sits_out(candidate))
        here.push_back(&candidate);
    if (here.empty()) continue;
    try {
      allocate_and_time(problem, on_device, here);
    } catch (const std::bad_alloc& error) {  // its values and their reference did not fit
      if (mpi_session().ranks() > 1) throw;
      for (Candidate* candidate : here) {
        candidate->runner.reset();
        if (candidate->is_ok() && candidate->measured.samples.empty())
          candidate->set("skipped", error.what());
      }
      problem.release();
    }
  }
  set_speedups(candidates);
  visited.set_errors();
  for (const Candidate& candidate : candidates) {
    if (!candidate.is_ok() || sits_out(candidate)) continue;
    const auto visits = candidate.measured.seconds_by_visit();
    for (std::size_t i = 0; i + 1 < visits.size(); ++i)
      differences_of_visits_.add(
          spread_group(candidate), visits.size() - 1,
          std::log(summarize(visits[i]).median / summarize(visits.back()).median));
  }
  set_intervals(candidates);
  write(candidates);
  if (WorkRecord* record = kept_work_record()) set_problem(*record, "");
  count(candidates, 1);
  if (!device_lost_after_.empty()) throw DeviceLost(device_lost_after_);
}

// The interval of a row depends on how far visits differ in the run so far.
void ProblemBench::set_intervals(std::vector<Candidate>& candidates) {
  for (Candidate& candidate : candidates) {
    if (!candidate.is_ok() || candidate.measured.samples.empty()) continue;
    const auto visits = candidate.measured.seconds_by_visit();
    candidate.summary =
        summarize_visits(visits, differences_of_visits_.usual(spread_group(candidate)));
    candidate.reason = candidate.remarks;
    if (visits.size() == 1) candidate.add_remark("its interval is of one visit");
    if (candidate.is_beyond_roof())
      candidate.add_remark(fmt::format("beyond its roof: {:.0f} % of it",
                                       100 * candidate.roof.seconds / candidate.summary.median));
    if (const double spread = candidate.summary.spread(); spread > widest_spread)
      candidate.add_remark(
          fmt::format("noisy: 95 % interval spans {:.0f} % of the median", 100 * spread));
    if (const double width = std::expm1(1.96 * candidate.standard_error);
        width > widest_beside_others && std::isfinite(width))
      candidate.add_remark(
          fmt::format("unsteady: known within {:.0f} % beside the other rows", 100 * width));
  }
}

bool ProblemBench::is_long(const Candidate& candidate) {
  return candidate.estimate_seconds >= slow_seconds;
}

bool ProblemBench::sits_out(const Candidate& candidate) const {
  return visit_ > 1 && is_slow(candidate);
}

void ProblemBench::visit_again(Visited& visited) {
  count(visited.candidates, -1);
  visit_ = visited.visits++;
  visit(visited);
}

bool ProblemBench::Visited::is_timed() const {
  return std::any_of(candidates.begin(), candidates.end(),
                     [](const Candidate& candidate) { return candidate.is_ok(); });
}

void ProblemBench::Visited::set_errors() {
  std::map<int, std::pair<Candidates, Group>> by_threads;
  for (Candidate& candidate : candidates) {
    candidate.standard_error = std::numeric_limits<double>::infinity();
    if (!candidate.is_ok() || candidate.measured.samples.empty() ||
        candidate.measured.is_disturbed())
      continue;
    auto& [rows, group] = by_threads[candidate.threads];
    rows.push_back(&candidate);
    std::vector<Repetition>& row = group.emplace_back();
    for (const Sample& sample : candidate.measured.samples)
      if (!sample.disturbed)
        row.push_back(
            {sample.round, sample.visit, std::log(sample.seconds), name_of(sample.cores)});
  }
  for (const auto& [threads, of_threads] : by_threads) {
    const auto& [rows, group] = of_threads;
    const std::vector<Estimate> found = estimates(group);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::vector<double>& centers = found[i].centers;
      rows[i]->standard_error =
          std::hypot(found[i].within,
                     standard_deviation(centers) / std::sqrt(static_cast<double>(centers.size())));
    }
  }
}

double ProblemBench::Visited::uncertainty() const {
  double worst = 0;
  for (const Candidate& candidate : candidates)
    if (candidate.is_ok() && !candidate.measured.samples.empty() && !is_slow(candidate))
      worst = std::max(worst, candidate.standard_error);
  return worst;
}

// A ceiling that a row beats was measured in a slow moment, perhaps. The next visits have roofs of
// the higher ones.
void ProblemBench::raise_beaten_ceilings() {
  if (mpi_session().ranks() > 1) return;
  std::map<int, std::set<std::string>> beaten;  // roofs, by threads
  for (const Visited& visited : visited_)
    for (const Candidate& candidate : visited.candidates)
      if (candidate.is_beyond_roof() && is_on(candidate, Place::cpu))
        beaten[candidate.threads].insert(candidate.roof.name);
  for (const auto& [threads, roofs] : beaten) run_.raise_ceilings(threads, roofs);
}

void ProblemBench::measure_again(const std::function<void(const Case&, double)>& advance) {
  constexpr double close_enough = 0.004;
  constexpr int most_visits = 5;
  const double all = mpi_session().broadcast(saved_seconds_);
  double left = all;
  const auto again = [&](Visited& visited) {
    const double before = run_.meter().noise().elapsed_seconds;
    visit_again(visited);
    left -= mpi_session().broadcast(run_.meter().noise().elapsed_seconds - before);
    advance(*visited.problem, all > 0 ? std::max(0.0, left / all) : 0);
  };
  raise_beaten_ceilings();
  // One visit does not show what it owes to where its operands are in memory.
  for (Visited& visited : visited_)
    if (visited.is_timed()) again(visited);
  for (bool any = true; any && left > 0;) {
    std::vector<std::pair<double, Visited*>> order;
    for (Visited& visited : visited_)
      if (const double uncertainty = visited.uncertainty();
          uncertainty > close_enough && visited.visits < most_visits)
        order.emplace_back(-uncertainty, &visited);
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    any = !order.empty();
    for (const auto& [uncertainty, visited] : order)
      if (left > 0) again(*visited);
  }
  // Now the spread between visits is known of all rows.
  std::vector<const BenchRow*> rows;
  for (Visited& visited : visited_) {
    if (!visited.is_timed()) continue;
    count(visited.candidates, -1);
    set_intervals(visited.candidates);
    count(visited.candidates, 1);
    for (const Candidate& candidate : visited.candidates)
      if (candidate.is_ok()) rows.push_back(&candidate);
  }
  if (writer_ != nullptr) writer_->write(rows);
  settle();
}

void ProblemBench::allocate_and_time(Case& problem, bool on_device, const Candidates& candidates) {
  const auto skip_all = [&](const std::string& reason) {
    for (Candidate* candidate : candidates)  // in a later visit, what was measured stays
      if (candidate->measured.samples.empty()) candidate->set("skipped", reason);
    problem.release();
  };
  const std::size_t copies = copies_of(problem, on_device);
  if (const std::string reason = why_too_large(problem, copies); !reason.empty())
    return skip_all(reason);
  const std::unique_ptr<char[]> shift = shift_pages(visit_);
  std::string failure;
  try {
    problem.allocate(copies, on_device ? device() : nullptr);
  } catch (const std::exception& error) {
    failure =
        fmt::format("its operands, {:.1f} GiB, cannot be allocated: {}",
                    static_cast<double>(copies) * problem.operand_bytes() / 0x1p30, error.what());
  }
  if (mpi_session().max(failure.empty() ? 0 : 1) > 0)
    return skip_all(failure.empty() ? "its operands cannot be allocated on another rank" : failure);
  const std::size_t together = on_device ? candidates.size() : planned_together(problem, copies);
  for (std::size_t first = 0; first < candidates.size(); first += together) {
    const Candidates some(candidates.begin() + static_cast<std::ptrdiff_t>(first),
                          candidates.begin() + static_cast<std::ptrdiff_t>(
                                                   std::min(first + together, candidates.size())));
    if (visit_ == 0)
      verify_all(problem, some);
    else
      plan_all_again(problem, some);
    if (device_lost_after_.empty()) time(problem, some, static_cast<int>(first / together));
    for (Candidate* candidate : some) {
      const ActiveSubject active(subject_of(*candidate), "released", 0);
      candidate->runner.reset();
    }
  }
  problem.release();
}

// All variants of a problem take turns, unless their workspaces might not fit the memory: each is
// expected to need at most twice as much as the operands.
std::size_t ProblemBench::planned_together(const Case& problem, std::size_t copies) const {
  const double ranks = mpi_session().ranks();
  const double free = 0.9 * least_available_memory() -
                      ranks * (problem.memory_needed(copies) +
                               static_cast<double>(copies) * problem.operand_bytes());
  return static_cast<std::size_t>(
      std::clamp(free / (2 * ranks * problem.operand_bytes()), 2.0, 1e6));
}

// The accuracy tier comes first and verifies every row. Then the same plans run on the other
// fillings: the exact tier, or other values for a variant that does not take it. To save time, slow
// rows skip these, and large problems skip the other values; `verify` skips nothing.
void ProblemBench::verify_all(Case& problem, const Candidates& candidates) {
  std::vector<Variant> variants;
  for (const Candidate* candidate : candidates) variants.push_back(*candidate->variant);
  std::vector<Filling> all = fillings(problem, variants, options_.seed);
  std::reverse(all.begin(), all.end());
  for (const Filling& filling : all) {
    Candidates wanted;
    for (Candidate* candidate : candidates) {
      const bool takes_exact = takes_exact_tier(problem, *candidate->variant->info);
      const bool further =
          candidate->estimate_seconds < checked_once_above &&
          (filling.tier == Tier::exact ? takes_exact
                                       : !takes_exact && problem.info().flops < large_flops);
      const bool is_planned = candidate->runner != nullptr;
      if (candidate->is_ok() && (!is_planned || further)) wanted.push_back(candidate);
    }
    if (wanted.empty()) continue;
    problem.fill(filling.tier, filling.seed);
    for (Candidate* candidate : wanted) {
      verify_one(problem, *candidate, filling.tier == Tier::exact ? "exact tier" : "accuracy tier");
      if (candidate->status == "failed" &&
          skip_if_device_lost(candidates, candidate->variant->name))
        return;
    }
  }
}

// A later visit has values of its own. Its plans run once, unless that takes long, and are verified
// after the timing alone.
void ProblemBench::plan_all_again(Case& problem, const Candidates& candidates) {
  problem.fill(filling_after_timing().tier, filling_after_timing().seed);
  for (Candidate* candidate : candidates) {
    if (mpi_session().max(interrupted ? 1 : 0) > 0) throw Interrupted{};
    const ActiveSubject active(subject_of(*candidate), "planned", expected_seconds(problem));
    const Verdict verdict =
        plan_again(problem, *candidate->variant, resources_of(problem, *candidate),
                   candidate->summary.median < warm_above, candidate->runner);
    threads_.belong_to(subject_of(*candidate));
    if (verdict.outcome == Outcome::unavailable)  // now, such as for lack of shared memory
      candidate->runner.reset();
    else if (verdict.outcome != Outcome::passed)
      candidate->set("failed", "another plan: " + verdict.reason);
  }
}

Resources ProblemBench::resources_of(const Case& problem, const Candidate& candidate) {
  return {candidate.threads, mpi_session().communicator(), links_of(problem)};
}

void ProblemBench::verify_one(Case& problem, Candidate& candidate, const char* when) {
  if (mpi_session().max(interrupted ? 1 : 0) > 0) throw Interrupted{};
  if (!is_on_device(candidate) && candidate.variant->info->threaded)
    if (const std::string reason = why_fewer_threads(candidate.threads); !reason.empty())
      return candidate.set("unavailable", reason);
  const ActiveSubject active(subject_of(candidate), "verified", expected_seconds(problem));
  const Verdict verdict =
      verify(problem, *candidate.variant, resources_of(problem, candidate), candidate.runner);
  threads_.belong_to(subject_of(candidate));
  candidate.estimate_seconds = mpi_session().max(verdict.seconds);
  candidate.verified = verdict.outcome == Outcome::passed;
  candidate.runs_nowhere = verdict.runs_nowhere;
  if (candidate.verified) {  // std::fmax ignores NaN
    candidate.error_ratio = std::fmax(candidate.error_ratio, verdict.error_ratio);
    if (candidate.variant->info->encoded_share != 1.0)
      candidate.relative_error = std::fmax(candidate.relative_error, verdict.relative_error);
  } else if (verdict.outcome == Outcome::unavailable)
    candidate.set("unavailable", verdict.reason);
  else
    candidate.set("failed", fmt::format("{}: {}", when, verdict.reason));
}

Filling ProblemBench::filling_after_timing() const {
  return {Tier::accuracy, options_.seed + 2 + static_cast<std::uint64_t>(visit_)};
}

// A row fails if its timed results are wrong, if its plan remembers results, or if its threads go
// on. Where timed results have no reference, because each run changes its operands, the plan runs
// once more: a kernel that goes wrong after many calls fails.
void ProblemBench::judge_timed(Case& problem, Candidate& candidate, double seconds) {
  const VariantInfo& info = *candidate.variant->info;
  std::string fault;
  if (problem.is_repeatable(info)) {
    const Check& check = candidate.timed_results;
    if (!check.passed) fault = "the timed results: " + check.what;
    if (mpi_session().max(fault.empty() ? 0 : 1) > 0) {
      if (fault.empty()) fault = "the timed results are wrong on another rank";
    } else {
      candidate.error_ratio =
          std::fmax(candidate.error_ratio, mpi_session().max(check.error_ratio));
      const ActiveSubject active(subject_of(candidate), "verified", expected_seconds(problem));
      const std::int64_t runs = candidate.measured.samples.back().iterations;
      // A single run that is long has operands of its own, and has to write results.
      if (runs > 1 || !is_long(candidate))
        fault = fault_of_pace(problem, *candidate.variant, *candidate.runner, seconds, runs);
      if (!fault.empty()) fault = "after the timing: " + fault;
    }
  }
  if (fault.empty() && !is_on_device(candidate)) {
    fault = threads_.fault_of(subject_of(candidate), candidate.threads);
    if (mpi_session().max(fault.empty() ? 0 : 1) > 0 && fault.empty())
      fault = "its threads go on after the call on another rank";
  }
  if (!fault.empty())
    candidate.set("failed", fault);
  else if (!problem.is_repeatable(info) || over_ranks(problem))
    verify_one(problem, candidate, "after the timing");
}

void ProblemBench::verify_timed(Case& problem, const Candidates& candidates) {
  for (Candidate* candidate : candidates) {
    if (!candidate->is_ok()) continue;
    judge_timed(problem, *candidate, candidate->visit_seconds);
    if (candidate->status == "failed" && skip_if_device_lost(candidates, candidate->variant->name))
      return;
  }
}

bool ProblemBench::skip_if_device_lost(const Candidates& candidates, const std::string& after) {
  if (!is_on_device(*candidates.front()) || !device_is_lost()) return false;
  device_lost_after_ = after;
  for (Candidate* candidate : candidates)
    if (candidate->is_ok()) candidate->set("skipped", after + " broke the device");
  return true;
}

// The plan is timed on operands of which a few elements change before each repetition, so that it
// never had the operands of the last repetition before. Their results are checked when that one
// ends; of a slow plan, the others must have written some.
Subject ProblemBench::subject_for(Case& problem, Candidate& candidate) {
  static constexpr std::size_t most_changed = 16;  // copies
  Runner* runner = candidate.runner.get();
  const VariantInfo* info = candidate.variant->info;
  const std::size_t copies = problem.copies();
  const auto copy_of = [copies](std::int64_t i) { return static_cast<std::size_t>(i) % copies; };
  const bool is_checked = problem.is_repeatable(*info);
  const bool must_write = is_checked && is_long(candidate);
  const int elements = must_write ? changed_elements : 1;
  const auto change = [&problem, info, copies, elements](std::uint64_t number) {
    for (std::size_t copy = 0; copy < std::min(copies, most_changed); ++copy)
      problem.change(*info, copy, number, elements);
  };
  change(1);
  const auto start = std::chrono::steady_clock::now();
  runner->prepare();
  if (info->prepacked)
    candidate.prepare_seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  candidate.timed_results = {.passed = true};
  return {.name = subject_of(candidate),
          .run = [runner, copy_of](std::int64_t i) { runner->run(copy_of(i)); },
          .clock = clock_of(candidate),
          .estimate_seconds = candidate.estimate_seconds,
          .threads = candidate.threads,
          .operand_sets = copies,
          .why_not_recorded = problem.info().ranks > 1 ? "on several GPUs" : "",
          .before_repetition =
              [&problem, info, change, copy_of, is_checked, must_write, number = std::uint64_t{1}](
                  std::int64_t last_iteration, bool is_last) mutable {
                change(++number);
                if (is_checked && is_last)
                  problem.restore(*info, copy_of(last_iteration));
                else if (must_write)
                  problem.poison_samples(*info, copy_of(last_iteration));
              },
          .after_runs =
              [this, &problem, &candidate, info, copy_of, is_checked, must_write](
                  std::int64_t last_iteration, bool is_last) {
                Check& results = candidate.timed_results;
                if (is_checked && is_last && results.passed)
                  results = problem.check(*info, copy_of(last_iteration));
                else if (must_write && results.passed)
                  results = written(problem, *info, copy_of(last_iteration));
                threads_.belong_to(subject_of(candidate));
              }};
}

// `group`: of candidates that are measured together. Repetitions of other groups and of other
// visits have other rounds, because they are not paired.
void ProblemBench::time(Case& problem, const Candidates& all, int group) {
  constexpr int rounds_of_group = 100'000, rounds_of_visit = 10'000;
  constexpr double first_share = 0.45, later_share = 0.3;  // of the repetitions and of the budget
  MeasureOptions options = options_.measure;
  options.repetitions =
      std::max(2, static_cast<int>(std::lround((visit_ == 0 ? first_share : later_share) *
                                               options.repetitions)));
  const double share = static_cast<double>(options.repetitions) / options_.measure.repetitions;
  options.budget_seconds *= share;
  if (visit_ > 0) options.once_above = slow_seconds;
  Candidates timed;
  std::vector<Subject> subjects;
  // Values that the plans have not seen; those of a later visit are there.
  if (visit_ == 0 && std::any_of(all.begin(), all.end(), [](auto* one) { return one->is_ok(); }))
    problem.fill(filling_after_timing().tier, filling_after_timing().seed);
  problem.reset_all();
  for (Candidate* candidate : all) {
    if (!candidate->is_ok() || candidate->runner == nullptr) continue;
    subjects.push_back(subject_for(problem, *candidate));
    timed.push_back(candidate);
  }
  const double before = run_.meter().noise().elapsed_seconds;
  std::vector<Measured> measured = run_.meter().measure(subjects, options);
  if (visit_ == 0) {
    double slow = 0;  // a slow row has half of it once more
    for (const Measured& one : measured)
      for (const Sample& sample : one.samples)
        if (sample.seconds >= slow_seconds) slow += sample.seconds;
    const double elapsed = run_.meter().noise().elapsed_seconds - before;
    saved_seconds_ += (1 / share - 1) * (elapsed - slow) + slow / 2;
  }
  // They took turns, so nobody knows which of them broke the device.
  const bool one_threw = std::any_of(measured.begin(), measured.end(),
                                     [](const Measured& m) { return !m.error.empty(); });
  if (one_threw && skip_if_device_lost(all, "one of the rungs that were timed")) return;
  for (Measured& one : measured)
    for (Sample& sample : one.samples) {
      sample.round += group * rounds_of_group + visit_ * rounds_of_visit;
      sample.visit = visit_;
    }
  for (std::size_t i = 0; i < timed.size(); ++i) {
    if (measured[i].runs_per_launch > 1)
      timed[i]->runner = std::make_unique<RecordedRunner>(std::move(timed[i]->runner));
    timed[i]->visit_seconds =
        measured[i].samples.empty() ? 0 : summarize(measured[i].seconds()).median;
    set_times(problem, *timed[i], std::move(measured[i]));
  }
  verify_timed(problem, timed);
}

void ProblemBench::set_times(const Case& problem, Candidate& candidate, Measured measured) {
  if (!measured.error.empty())
    return candidate.set("failed", "threw while timed: " + measured.error);
  if (const std::string fault = mpi_session().failure(fault_of_clock(measured)); !fault.empty())
    return candidate.set("failed", fault);
  std::vector<Sample>& samples = candidate.measured.samples;
  samples.insert(samples.end(), measured.samples.begin(), measured.samples.end());
  candidate.measured.note = measured.note;
  candidate.summary = summarize(candidate.measured.seconds());  // set_speedups() compares medians
  candidate.reason = candidate.runner->remark();
  candidate.add_remark(measured.launches);
  candidate.add_remark(candidate.measured.note);
  candidate.remarks = candidate.reason;
  if (const Links* links = links_of(problem)) {
    const ProblemInfo& info = problem.info();
    if (const detail::CostFunction cost = candidate.variant->entry.cost)
      candidate.predicted_seconds = cost({.p = static_cast<double>(info.ranks),
                                          .n = info.vector_bytes,
                                          .g = static_cast<double>(info.ranks) / info.hosts,
                                          .l = *links});
    if (const detail::CostFunction cost = candidate.variant->entry.cost;
        cost != nullptr && candidate.variant->info->encoded_share != 1.0)
      candidate.break_even_rate = break_even_rate(cost, info.ranks, info.vector_bytes, *links);
    if (info.bus_bytes > 0) candidate.roof = all_reduce_roof(info.vector_bytes, info.hosts, *links);
    return;
  }
  const std::string on = device_of(*candidate.variant->info);
  if (is_on(candidate, Place::opencl) && on != "cpu") return;  // its ceilings are not measured
  ProblemInfo info = problem.info();
  info.precision = candidate.precision();
  candidate.roof = is_on_device(candidate)
                       ? device_roof_of(info, *candidate.variant->info, run_.ceilings())
                       : roof_of(info, problem.operand_bytes(), options_.cold, candidate.threads,
                                 run_.machine().caches, run_.ceilings());
}

void ProblemBench::set_speedups(std::vector<Candidate>& candidates) const {
  for (Candidate& row : candidates) {
    row.speedup_vs_serial = row.speedup_vs_compiler = row.speedup_vs_vendor =
        row.speedup_vs_vendor_equal = BenchRow::none;  // the other row may have failed
    if (!row.is_ok()) continue;
    const auto over_fastest = [&](const auto& is_wanted) {
      const Candidate* fastest = nullptr;
      for (const Candidate& other : candidates)
        if (other.is_ok() && is_wanted(other) &&
            (fastest == nullptr || other.summary.median < fastest->summary.median))
          fastest = &other;
      return fastest == nullptr ? BenchRow::none : ratio(fastest->measured, row.measured).median;
    };
    row.speedup_vs_serial = over_fastest(is_first_rung);
    row.speedup_vs_compiler =
        over_fastest([](const BenchRow& other) { return other.variant->info->by_compiler; });
    row.speedup_vs_vendor =
        over_fastest([&](const BenchRow& other) { return is_vendor_of(row, other); });
    row.speedup_vs_vendor_equal =
        over_fastest([&](const BenchRow& other) { return is_equal_vendor_of(row, other); });
  }
}

void ProblemBench::count(const std::vector<Candidate>& candidates, int sign) {
  for (const Candidate& candidate : candidates) {
    counts_.ok += sign * candidate.is_ok();
    counts_.failed += sign * (candidate.status == "failed");
    counts_.unavailable += sign * (candidate.status == "unavailable");
    counts_.skipped += sign * (candidate.status == "skipped");
    counts_.disturbed += sign * (candidate.is_ok() && candidate.measured.is_disturbed());
    counts_.flagged += sign * (candidate.is_ok() && candidate.summary.spread() > widest_spread);
  }
}

void ProblemBench::write(std::vector<Candidate>& candidates) {
  // One row for a variant that runs nowhere.
  std::erase_if(candidates, [&](Candidate& candidate) {
    if (!candidate.runs_nowhere || candidate.problem == nullptr) return false;
    const Variant& variant = *candidate.variant;
    if (!runs_nowhere_.insert(variant.primitive + " " + variant.name).second) return true;
    static_cast<BenchRow&>(candidate) = {
        .variant = &variant, .status = "unavailable", .reason = candidate.reason};
    return false;
  });
  std::vector<const BenchRow*> rows;
  for (const Candidate& candidate : candidates) rows.push_back(&candidate);
  run_.keep();  // first: whatever ends the process, each sample has its record
  if (writer_ != nullptr) writer_->write(rows);
}

}  // namespace stepladder

#include "harness/results/bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "harness/io/glob.hpp"
#include "harness/io/mpi_session.hpp"
#include "harness/io/shell.hpp"
#include "harness/results/bench_writer.hpp"

namespace stepladder {
namespace {

constexpr double slow_seconds = 0.3;   // of one call
constexpr double large_flops = 1e9;    // of one problem
constexpr double widest_spread = 0.2;  // of the confidence interval, relative to the median

// Processes, not GPUs of one process.
bool over_ranks(const Case& problem) {
  return problem.info().ranks > 1 && mpi_session().ranks() > 1;
}

bool is_on(const BenchRow& row, Place place) { return row.variant->info->place == place; }

bool is_first_rung(const BenchRow& row) {
  return row.variant->info->technique == Technique::serial && *row.variant->info->builds_on == '\0';
}

// Whether `library` is what `row` should be compared with.
bool is_vendor_of(const BenchRow& row, const BenchRow& library) {
  const VariantInfo &own = *row.variant->info, &other = *library.variant->info;
  return other.technique == Technique::vendor && library.threads == row.threads &&
         other.precision == own.precision && other.prepacked == own.prepacked &&
         other.place == own.place;
}

Clock clock_of(const BenchRow& row) {
  if (is_on(row, Place::cuda)) return Clock::device;
  return row.problem->ranks > 1 ? Clock::ranks : Clock::wall;
}

}  // namespace

Bench::Bench(Run& run, BenchOptions options) : run_(run), options_(std::move(options)) {
  if (run_.writes()) writer_ = std::make_unique<BenchWriter>(run_.folder());
}

Bench::~Bench() = default;

// The rows to measure, without those that the resumed run has. Variants that have their one row
// because they run nowhere are left out.
std::vector<Bench::Candidate> Bench::plan(const Case& problem,
                                          const std::vector<Variant>& variants) {
  std::vector<Candidate> candidates;
  for (const Variant& variant : variants) {
    if (runs_nowhere_.contains(variant.primitive + " " + variant.name)) continue;
    for (const int threads : variant.info->threaded ? options_.threads : std::vector<int>{1}) {
      Candidate candidate;
      candidate.variant = &variant;
      candidate.problem = &problem.info();
      candidate.threads = threads;
      candidate.cold = is_cold(problem);
      const bool measured =
          writer_ != nullptr && !options_.again && writer_->has_measured(candidate);
      if (mpi_session().broadcast(std::int64_t{measured}) != 0) {
        ++counts_.kept;
        continue;
      }
      candidate.repeat_command = repeat_command(candidate);
      if (!variant.why_unavailable.empty()) {
        candidate.set("unavailable", variant.why_unavailable);
        candidate.runs_nowhere = true;
      }
      candidates.push_back(std::move(candidate));
    }
  }
  return candidates;
}

std::string Bench::repeat_command(const Candidate& candidate) const {
  const ProblemInfo& info = *candidate.problem;
  const int ranks = mpi_session().ranks();
  return fmt::format(
      "{}build/stepladder bench {} --variant {} {} --problem {} --direction {} --threads {}{}{}",
      ranks > 1 ? fmt::format("mpirun -np {} ", ranks) : "", info.primitive,
      candidate.variant->name, options_.suite_argument, shell_quoted(glob_of(info.name)),
      info.direction, candidate.threads, options_.cold ? " --cold" : "",
      options_.seed != 1 ? fmt::format(" --seed {}", options_.seed) : "");
}

// Gradients that are exchanged were just computed, layer by layer: they are not in the caches. One
// vector reduced again and again would flatter, so processes always rotate their operands.
bool Bench::is_cold(const Case& problem) const { return options_.cold || over_ranks(problem); }

// Null unless the problem is of several processes.
const Links* Bench::links_of(const Case& problem) {
  return over_ranks(problem) ? &run_.links() : nullptr;
}

// Cold operands are rotated through twice the last-level cache of their place.
std::size_t Bench::copies_of(const Case& problem, Place place) const {
  if (!is_cold(problem)) return 1;
  const std::size_t cache = place == Place::cuda ? device()->l2_bytes() : run_.machine().caches.l3;
  return static_cast<std::size_t>(
      std::clamp(2.0 * static_cast<double>(cache) / problem.operand_bytes(), 2.0, most_copies));
}

// Of the hosts of all ranks, which decide alike. Collective.
double Bench::least_available_memory() const {
  return -mpi_session().max(-run_.machine().memory_available_bytes);
}

// Empty when the problem fits the memory.
std::string Bench::why_too_large(const Case& problem, std::size_t copies) const {
  const double needed = problem.memory_needed(copies) * mpi_session().ranks();
  const double available = 0.9 * least_available_memory();
  if (needed <= available) return {};
  return fmt::format("needs {:.1f} GiB; {:.1f} GiB are available", needed / 0x1p30,
                     available / 0x1p30);
}

bool Bench::measure(Case& problem, const std::vector<Variant>& variants, bool may_postpone) {
  const int kept_before = counts_.kept;
  std::vector<Candidate> candidates = plan(problem, variants);
  const bool any = std::any_of(candidates.begin(), candidates.end(),
                               [](const Candidate& candidate) { return candidate.is_ok(); });
  if (over_ranks(problem) && any) run_.refresh_links();
  for (const Place place : {Place::cpu, Place::cuda}) {
    Candidates here;
    for (Candidate& candidate : candidates)
      if (is_on(candidate, place) && candidate.is_ok()) here.push_back(&candidate);
    if (!here.empty()) allocate_and_time(problem, place, here);
  }
  const auto is_disturbed = [](const Candidate& candidate) {
    return candidate.is_ok() && candidate.measured.is_disturbed();
  };
  if (may_postpone && device_lost_after_.empty() &&
      std::any_of(candidates.begin(), candidates.end(), is_disturbed)) {
    counts_.kept = kept_before;
    return false;
  }
  set_speedups(candidates);
  count_and_write(candidates);
  if (!device_lost_after_.empty()) throw DeviceLost(device_lost_after_);
  return true;
}

void Bench::allocate_and_time(Case& problem, Place place, const Candidates& candidates) {
  const auto skip_all = [&](const std::string& reason) {
    for (Candidate* candidate : candidates) candidate->set("skipped", reason);
  };
  const std::size_t copies = copies_of(problem, place);
  if (const std::string reason = why_too_large(problem, copies); !reason.empty())
    return skip_all(reason);
  std::string failure;
  try {
    problem.allocate(copies, place == Place::cuda ? device() : nullptr);
  } catch (const std::exception& error) {
    failure =
        fmt::format("its operands, {:.1f} GiB, cannot be allocated: {}",
                    static_cast<double>(copies) * problem.operand_bytes() / 0x1p30, error.what());
  }
  if (mpi_session().max(failure.empty() ? 0 : 1) > 0)
    return skip_all(failure.empty() ? "its operands cannot be allocated on another rank" : failure);
  const std::size_t together =
      place == Place::cuda ? candidates.size() : planned_together(problem, copies);
  for (std::size_t first = 0; first < candidates.size(); first += together) {
    const Candidates some(candidates.begin() + static_cast<std::ptrdiff_t>(first),
                          candidates.begin() + static_cast<std::ptrdiff_t>(
                                                   std::min(first + together, candidates.size())));
    verify_all(problem, some);
    // Groups have other rounds: their repetitions are not paired with each other.
    constexpr int rounds_of_group = 100000;
    if (device_lost_after_.empty())
      time(problem, some, static_cast<int>(first / together) * rounds_of_group);
    for (Candidate* candidate : some) candidate->runner.reset();
  }
}

// All variants of a problem take turns, unless their workspaces might not fit the memory: each is
// expected to need at most twice as much as the operands.
std::size_t Bench::planned_together(const Case& problem, std::size_t copies) const {
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
void Bench::verify_all(Case& problem, const Candidates& candidates) {
  std::vector<Variant> variants;
  for (const Candidate* candidate : candidates) variants.push_back(*candidate->variant);
  std::vector<Filling> all = fillings(problem, variants, options_.seed);
  std::reverse(all.begin(), all.end());
  for (const Filling& filling : all) {
    Candidates wanted;
    for (Candidate* candidate : candidates) {
      const bool takes_exact = takes_exact_tier(problem, *candidate->variant->info);
      const bool further =
          candidate->estimate_seconds < slow_seconds &&
          (filling.tier == Tier::exact ? takes_exact
                                       : !takes_exact && problem.info().flops < large_flops);
      if (candidate->is_ok() && (!candidate->verified || further)) wanted.push_back(candidate);
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

void Bench::verify_one(Case& problem, Candidate& candidate, const char* when) {
  if (mpi_session().max(interrupted ? 1 : 0) > 0) throw Interrupted{};
  const Resources resources{candidate.threads, mpi_session().communicator(), links_of(problem)};
  const Verdict verdict = verify(problem, *candidate.variant, resources, candidate.runner);
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

// The plans that were timed run once more, on values that they have not seen: a kernel that goes
// wrong after many calls, or that returns what it computed before, fails.
void Bench::verify_timed(Case& problem, const Candidates& candidates) {
  problem.fill(Tier::accuracy, options_.seed + 2);
  for (Candidate* candidate : candidates) {
    if (!candidate->is_ok()) continue;
    verify_one(problem, *candidate, "after the timing");
    if (candidate->status == "failed" && skip_if_device_lost(candidates, candidate->variant->name))
      return;
  }
}

bool Bench::skip_if_device_lost(const Candidates& candidates, const std::string& after) {
  if (!is_on(*candidates.front(), Place::cuda) || !device_is_lost()) return false;
  device_lost_after_ = after;
  for (Candidate* candidate : candidates)
    if (candidate->is_ok()) {
      candidate->set("skipped", after + " broke the device");
      candidate->verified = false;
    }
  return true;
}

void Bench::time(Case& problem, const Candidates& all, int first_round) {
  Candidates timed;
  std::vector<Subject> subjects;
  problem.reset();
  const std::size_t copies = problem.copies();
  for (Candidate* candidate : all) {
    if (!candidate->is_ok()) continue;
    Runner* runner = candidate->runner.get();
    const auto start = std::chrono::steady_clock::now();
    runner->prepare();
    if (candidate->variant->info->prepacked)
      candidate->prepare_seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const ProblemInfo& info = problem.info();
    subjects.push_back(
        {.name = fmt::format("{}/{}/{}/{}/threads:{}", info.primitive, info.direction, info.name,
                             candidate->variant->name, candidate->threads),
         .run = [runner,
                 copies](std::int64_t i) { runner->run(static_cast<std::size_t>(i) % copies); },
         .clock = clock_of(*candidate),
         .estimate_seconds = candidate->estimate_seconds});
    timed.push_back(candidate);
  }
  std::vector<Measured> measured = run_.meter().measure(subjects, options_.measure);
  // They took turns, so nobody knows which of them broke the device.
  const bool one_threw = std::any_of(measured.begin(), measured.end(),
                                     [](const Measured& m) { return !m.error.empty(); });
  if (one_threw && skip_if_device_lost(all, "one of the rungs that were timed")) return;
  for (Measured& one : measured)
    for (Sample& sample : one.samples) sample.round += first_round;
  for (std::size_t i = 0; i < timed.size(); ++i)
    set_times(problem, *timed[i], std::move(measured[i]));
  verify_timed(problem, timed);
}

void Bench::set_times(const Case& problem, Candidate& candidate, Measured measured) {
  candidate.measured = std::move(measured);
  if (!candidate.measured.error.empty())
    return candidate.set("failed", "threw while timed: " + candidate.measured.error);
  candidate.summary = summarize(candidate.measured.seconds());
  candidate.reason = candidate.runner->remark();
  const auto add_remark = [&](const std::string& remark) {
    candidate.reason += (candidate.reason.empty() || remark.empty() ? "" : "; ") + remark;
  };
  add_remark(candidate.measured.note);
  if (const double spread = candidate.summary.spread(); spread > widest_spread)
    add_remark(fmt::format("noisy: 95 % interval spans {:.0f} % of the median", 100 * spread));
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
  candidate.roof =
      is_on(candidate, Place::cuda)
          ? device_roof_of(problem.info(), candidate.variant->info->precision, run_.ceilings())
          : roof_of(problem.info(), problem.operand_bytes(), options_.cold, candidate.threads,
                    run_.machine().caches, run_.ceilings());
}

void Bench::set_speedups(std::vector<Candidate>& candidates) const {
  for (Candidate& row : candidates) {
    if (!row.is_ok()) continue;
    const Candidate* vendor = nullptr;
    for (const Candidate& other : candidates) {
      if (!other.is_ok()) continue;
      if (is_first_rung(other)) row.speedup_vs_serial = ratio(other.measured, row.measured).median;
      if (is_vendor_of(row, other) &&
          (vendor == nullptr || other.summary.median < vendor->summary.median))
        vendor = &other;
    }
    if (vendor != nullptr) row.speedup_vs_vendor = ratio(vendor->measured, row.measured).median;
  }
}

void Bench::count_and_write(std::vector<Candidate>& candidates) {
  std::vector<const BenchRow*> rows;
  for (Candidate& candidate : candidates) {
    if (candidate.runs_nowhere) {
      const Variant& variant = *candidate.variant;
      if (!runs_nowhere_.insert(variant.primitive + " " + variant.name).second) continue;
      static_cast<BenchRow&>(candidate) = {
          .variant = &variant, .status = "unavailable", .reason = candidate.reason};
    }
    rows.push_back(&candidate);
    counts_.ok += candidate.is_ok();
    counts_.failed += candidate.status == "failed";
    counts_.unavailable += candidate.status == "unavailable";
    counts_.skipped += candidate.status == "skipped";
    counts_.disturbed += candidate.is_ok() && candidate.measured.is_disturbed();
    counts_.flagged += candidate.is_ok() && candidate.summary.spread() > widest_spread;
  }
  if (writer_ != nullptr) writer_->write(rows);
}

}  // namespace stepladder

#include "harness/results/bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "harness/io/csv.hpp"
#include "harness/io/ranks.hpp"
#include "harness/io/shell.hpp"
#include "harness/verify/verify.hpp"

namespace stepladder {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double slow_seconds = 0.3;   // of one run
constexpr double large_flops = 1e9;    // of one problem
constexpr double widest_spread = 0.2;  // of the confidence interval, relative to the median

// What tells rows of summary.csv apart.
const std::vector<std::string> key_columns = {"primitive", "direction", "suite", "problem",
                                              "variant",   "threads",   "ranks", "cache"};
// Likewise of samples.csv, which has no suite and no cache.
const std::vector<std::string> samples_key_columns = {"primitive", "direction", "problem",
                                                      "variant",   "threads",   "ranks"};

std::string key_of(const CsvRow& row, const std::vector<std::string>& columns) {
  std::string key;
  for (const std::string& column : columns) key += row.text(column) + "|";
  return key;
}

std::string time_text(double seconds) { return seconds > 0 ? number(seconds) : std::string{}; }

}  // namespace

struct Bench::Row {
  const Variant* variant;
  int threads;
  std::string status = "ok", reason{};
  double error_ratio = nan, prepare_seconds = nan, estimate_seconds = 0;
  bool verified = false;
  std::unique_ptr<Runner> runner{};
  Measured measured{};
  Summary summary{};
  Roof roof{};
  double speedup_vs_serial = nan, speedup_vs_vendor = nan;
};

struct Bench::Tables {
  Table summary, samples;
  std::map<std::string, std::string>
      former;  // status of the rows that the resumed run holds, by key

  explicit Tables(const RunFolder& folder)
      : summary(folder.table("summary", summary_columns)),
        samples(folder.table("samples", samples_columns)) {
    if (!folder.resumed()) return;
    const CsvFile before(folder.directory() / "summary.csv", summary_columns);
    std::set<std::string> timed;
    for (const CsvRow& row : before.rows()) {
      former[key_of(row, key_columns)] = row.text("status");
      if (row.text("status") == "ok") timed.insert(key_of(row, samples_key_columns));
    }
    // A crash may have come between the samples of a problem and its rows.
    samples.remove_rows(
        [&](const CsvRow& row) { return !timed.contains(key_of(row, samples_key_columns)); });
  }
};

Bench::Bench(Run& run, BenchOptions options) : run_(run), options_(std::move(options)) {
  if (run_.writes()) tables_ = std::make_unique<Tables>(run_.folder());
}

Bench::~Bench() = default;

std::string Bench::key(const Case& problem, const Row& row) const {
  const ProblemInfo& info = problem.info();
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|", info.primitive, info.direction, info.suite,
                     info.name, row.variant->name, row.threads, info.ranks,
                     options_.cold ? "cold" : "warm");
}

std::string Bench::samples_key(const Case& problem, const Row& row) const {
  const ProblemInfo& info = problem.info();
  return fmt::format("{}|{}|{}|{}|{}|{}|", info.primitive, info.direction, info.name,
                     row.variant->name, row.threads, info.ranks);
}

std::vector<Bench::Row> Bench::plan_rows(const Case& problem,
                                         const std::vector<Variant>& variants) const {
  std::vector<Row> rows;
  for (const Variant& variant : variants)
    for (const int threads : variant.info->threaded ? options_.threads : std::vector<int>{1}) {
      Row row{.variant = &variant, .threads = threads};
      bool done = false;
      if (tables_ && !options_.again) {
        const auto former = tables_->former.find(key(problem, row));
        done = former != tables_->former.end() && former->second == "ok";
      }
      if (mpi_session().broadcast(std::int64_t{done}) == 0) rows.push_back(std::move(row));
    }
  return rows;
}

bool Bench::fits_memory(const Case& problem, std::size_t copies, std::string& reason) const {
  const double needed = problem.memory_needed(copies) * mpi_session().ranks();
  const double available = 0.9 * run_.machine().memory_available_bytes;
  if (needed <= available) return true;
  reason = fmt::format("needs {:.1f} GiB; {:.1f} GiB are available", needed / 0x1p30,
                       available / 0x1p30);
  return false;
}

void Bench::measure(Case& problem, const std::vector<Variant>& variants) {
  std::vector<Row> rows = plan_rows(problem, variants);
  const std::size_t asked = [&] {
    std::size_t count = 0;
    for (const Variant& v : variants) count += v.info->threaded ? options_.threads.size() : 1;
    return count;
  }();
  counts_.kept += static_cast<int>(asked - rows.size());
  if (rows.empty()) return;

  const auto copies =
      options_.cold
          ? static_cast<std::size_t>(std::clamp(
                2.0 * static_cast<double>(run_.machine().caches.l3) / problem.operand_bytes(), 2.0,
                4096.0))
          : std::size_t{1};
  std::string too_big;
  const bool fits = fits_memory(problem, copies, too_big);
  for (const Place place : {Place::cpu, Place::cuda}) {
    std::vector<Row*> here;
    for (Row& row : rows) {
      if (row.variant->info->place != place) continue;
      if (!row.variant->why_unavailable.empty())
        row.status = "unavailable", row.reason = row.variant->why_unavailable;
      else if (!fits)
        row.status = "skipped", row.reason = too_big;
      else
        here.push_back(&row);
    }
    if (!here.empty()) allocate_and_time(problem, place, copies, here);
  }
  compare(rows);
  write(problem, rows);
  if (!device_lost_after_.empty()) throw DeviceLost(device_lost_after_);
}

void Bench::allocate_and_time(Case& problem, Place place, std::size_t copies,
                              std::vector<Row*>& rows) {
  std::string failure;
  try {
    problem.allocate(copies, place == Place::cuda ? device() : nullptr);
  } catch (const std::exception& error) {
    failure =
        fmt::format("its operands, {:.1f} GiB, cannot be allocated: {}",
                    static_cast<double>(copies) * problem.operand_bytes() / 0x1p30, error.what());
  }
  if (mpi_session().max(failure.empty() ? 0 : 1) > 0) {
    if (failure.empty()) failure = "its operands cannot be allocated on another rank";
    for (Row* row : rows) row->status = "skipped", row->reason = failure;
    return;
  }
  prove(problem, rows);
  if (device_lost_after_.empty()) time(problem, rows);
  for (Row* row : rows) row->runner.reset();
}

// Accuracy first, which proves every row; then, with the same plans, the other fillings: the exact tier, or
// second values for a variant that is not held to it. Rows so slow that each run eats the time of many
// others are spared those, as are second values of large problems: `verify` spares nothing.
void Bench::prove(Case& problem, std::vector<Row*>& rows) {
  std::vector<Variant> variants;
  for (const Row* row : rows) variants.push_back(*row->variant);
  std::vector<Filling> all = fillings(problem, variants, options_.seed);
  std::reverse(all.begin(), all.end());
  for (const Filling& filling : all) {
    std::vector<Row*> wanted;
    for (Row* row : rows) {
      const bool takes_exact = takes_exact_tier(problem, *row->variant->info);
      const bool further =
          row->estimate_seconds < slow_seconds &&
          (filling.tier == Tier::exact ? takes_exact
                                       : !takes_exact && problem.info().flops < large_flops);
      if (row->status == "ok" && (!row->verified || further)) wanted.push_back(row);
    }
    if (wanted.empty()) continue;
    problem.fill(filling.tier, filling.seed);
    for (Row* row : wanted) {
      prove(problem, *row, filling.tier);
      if (row->status == "failed" && skip_if_device_lost(rows, row->variant->name)) return;
    }
  }
}

bool Bench::skip_if_device_lost(std::vector<Row*>& rows, const std::string& after) {
  if (rows.front()->variant->info->place != Place::cuda || !device_is_lost()) return false;
  device_lost_after_ = after;
  for (Row* row : rows)
    if (row->status == "ok")
      row->status = "skipped", row->verified = false, row->reason = after + " broke the device";
  return true;
}

void Bench::prove(Case& problem, Row& row, Tier tier) {
  if (mpi_session().max(interrupted ? 1 : 0) > 0) throw Interrupted{};
  const Resources resources{row.threads, mpi_session().communicator()};
  const Verdict verdict = verify(problem, *row.variant, resources, row.runner);
  row.estimate_seconds = mpi_session().max(verdict.seconds);
  if (verdict.outcome == Outcome::passed) {
    row.error_ratio =
        std::fmax(row.error_ratio, verdict.error_ratio);  // which ignores the NaN at first
    row.verified = true;
    return;
  }
  row.verified = false;
  row.status = verdict.outcome == Outcome::failed ? "failed" : "unavailable";
  row.reason =
      verdict.outcome == Outcome::failed
          ? fmt::format("{} tier: {}", tier == Tier::exact ? "exact" : "accuracy", verdict.reason)
          : verdict.reason;
}

void Bench::time(Case& problem, std::vector<Row*>& rows) {
  std::vector<Row*> timed;
  std::vector<Subject> subjects;
  problem.reset();
  const ProblemInfo& info = problem.info();
  const std::size_t copies = problem.copies();
  for (Row* row : rows) {
    if (row->status != "ok") continue;
    Runner* runner = row->runner.get();
    const auto start = std::chrono::steady_clock::now();
    runner->prepare();
    if (row->variant->info->prepacked)
      row->prepare_seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    subjects.push_back(
        {.name = fmt::format("{}/{}/{}/{}/threads:{}", info.primitive, info.direction, info.name,
                             row->variant->name, row->threads),
         .run = [runner,
                 copies](std::int64_t i) { runner->run(static_cast<std::size_t>(i) % copies); },
         .clock = row->variant->info->place == Place::cuda ? Clock::device
                  : info.ranks > 1                         ? Clock::ranks
                                                           : Clock::wall,
         .estimate_seconds = row->estimate_seconds});
    timed.push_back(row);
  }
  std::vector<Measured> measured = run_.meter().measure(subjects, options_.measure);
  // They take turns, so which of them it was is not known.
  if (std::any_of(measured.begin(), measured.end(),
                  [](const Measured& m) { return !m.error.empty(); }) &&
      skip_if_device_lost(rows, "one of the rungs that were timed"))
    return;
  for (std::size_t i = 0; i < timed.size(); ++i) {
    Row& row = *timed[i];
    row.measured = std::move(measured[i]);
    if (!row.measured.error.empty()) {
      row.status = "failed";
      row.reason = "threw while timed: " + row.measured.error;
      continue;
    }
    row.summary = summarize(row.measured.seconds());
    row.reason = row.measured.note;
    if (row.summary.spread() > widest_spread)
      row.reason += fmt::format("{}noisy: 95 % interval spans {:.0f} % of the median",
                                row.reason.empty() ? "" : "; ", 100 * row.summary.spread());
    row.roof = row.variant->info->place == Place::cuda
                   ? device_roof_of(info, row.variant->info->precision, run_.ceilings())
                   : roof_of(info, problem.operand_bytes(), options_.cold, row.threads,
                             run_.machine().caches, run_.ceilings());
  }
}

void Bench::compare(std::vector<Row>& rows) const {
  const auto is_foot = [](const Row& row) {
    return row.variant->info->technique == Technique::serial &&
           *row.variant->info->builds_on == '\0';
  };
  for (Row& row : rows) {
    if (row.status != "ok") continue;
    const Row* vendor = nullptr;
    for (const Row& other : rows) {
      if (other.status != "ok") continue;
      if (is_foot(other)) row.speedup_vs_serial = ratio(other.measured, row.measured).median;
      const bool comparable =
          other.variant->info->technique == Technique::vendor && other.threads == row.threads &&
          std::string_view(other.variant->info->precision) == row.variant->info->precision &&
          other.variant->info->prepacked == row.variant->info->prepacked &&
          other.variant->info->place == row.variant->info->place;
      if (comparable && (vendor == nullptr || other.summary.median < vendor->summary.median))
        vendor = &other;
    }
    if (vendor != nullptr) row.speedup_vs_vendor = ratio(vendor->measured, row.measured).median;
  }
}

std::vector<std::string> Bench::summary_row(const Case& problem, const Row& row) const {
  const ProblemInfo& p = problem.info();
  const VariantInfo& v = *row.variant->info;
  const bool ok = row.status == "ok";
  const double seconds = ok ? row.summary.median : nan, bytes = p.bytes_read + p.bytes_written;
  double cycles = nan, instructions = nan;
  if (ok && row.measured.samples.front().counters) {
    std::vector<double> c, i;
    for (const Sample& sample : row.measured.samples)
      if (sample.counters)
        c.push_back(sample.counters->cycles), i.push_back(sample.counters->instructions);
    cycles = summarize(c).median;
    instructions = summarize(i).median;
  }
  const std::string launcher =
      mpi_session().ranks() > 1 ? fmt::format("mpirun -np {} ", mpi_session().ranks()) : "";
  return {
      p.primitive,
      p.direction,
      row.variant->name,
      name_of(v.technique),
      v.builds_on,
      p.suite,
      p.name,
      p.shape,
      v.precision,
      p.layout,
      v.prepacked ? "yes" : "no",
      options_.cold ? "cold" : "warm",
      std::to_string(row.threads),
      std::to_string(p.ranks),
      v.place == Place::cuda ? (device() != nullptr ? device()->name() : "cuda") : "cpu",
      row.status,
      row.reason,
      row.verified ? "yes" : "no",
      number(row.error_ratio),
      ok ? std::to_string(row.summary.count) : "",
      time_text(seconds),
      ok ? time_text(row.summary.ci_low) : "",
      ok ? time_text(row.summary.ci_high) : "",
      ok ? time_text(row.summary.min) : "",
      number(row.prepare_seconds),
      number(p.flops),
      number(bytes),
      number(p.flops / seconds / 1e9),
      number(bytes / seconds / 1e9),
      p.bus_bytes > 0 ? number(p.bus_bytes / seconds / 1e9) : "",
      ok ? row.roof.name : "",
      ok && row.roof.seconds > 0 ? number(100 * row.roof.seconds / seconds) : "",
      number(row.speedup_vs_serial),
      number(row.speedup_vs_vendor),
      number(cycles),
      number(instructions),
      number(cycles / instructions),
      "",
      fmt::format("{}build/stepladder bench {} --variant {} {} --problem {} --direction {} "
                  "--threads {}{}{}",
                  launcher, p.primitive, row.variant->name, options_.suite_argument,
                  shell_quoted(p.name), p.direction, row.threads, options_.cold ? " --cold" : "",
                  options_.seed != 1 ? fmt::format(" --seed {}", options_.seed) : "")};
}

void Bench::write(const Case& problem, const std::vector<Row>& rows) {
  std::vector<std::vector<std::string>> summary, samples;
  std::vector<std::string> replaced;
  std::set<std::string> replaced_samples;
  const ProblemInfo& p = problem.info();
  for (const Row& row : rows) {
    counts_.ok += row.status == "ok";
    counts_.failed += row.status == "failed";
    counts_.unavailable += row.status == "unavailable";
    counts_.skipped += row.status == "skipped";
    counts_.flagged += row.status == "ok" && row.summary.spread() > widest_spread;
    if (!tables_) continue;
    // A row that could not be measured before: the same again adds nothing, anything else takes its place.
    if (const auto former = tables_->former.find(key(problem, row));
        former != tables_->former.end()) {
      if (former->second == row.status && row.status != "failed" && row.status != "ok") continue;
      replaced.push_back(former->first);
      if (former->second == "ok") replaced_samples.insert(samples_key(problem, row));
    }
    summary.push_back(summary_row(problem, row));
    if (row.status != "ok") continue;
    for (const Sample& s : row.measured.samples)
      samples.push_back({p.primitive, p.direction, row.variant->name, p.name,
                         std::to_string(row.threads), std::to_string(p.ranks),
                         std::to_string(s.round), number(s.seconds), std::to_string(s.iterations),
                         s.disturbed ? "disturbed" : "", number(s.calibration_ratio),
                         number(s.stolen_seconds), number(s.reference_cycles),
                         s.counters ? number(s.counters->cycles) : "",
                         s.counters ? number(s.counters->instructions) : "",
                         s.counters ? number(s.counters->cache_misses) : ""});
  }
  if (!tables_) return;
  if (!replaced.empty())
    tables_->summary.remove_rows([&](const CsvRow& row) {
      return std::find(replaced.begin(), replaced.end(), key_of(row, key_columns)) !=
             replaced.end();
    });
  if (!replaced_samples.empty())
    tables_->samples.remove_rows([&](const CsvRow& row) {
      return replaced_samples.contains(key_of(row, samples_key_columns));
    });
  tables_->samples.append(samples);
  tables_->summary.append(summary);
}

}  // namespace stepladder

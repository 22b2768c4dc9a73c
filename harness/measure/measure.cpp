#include "harness/measure/measure.hpp"

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>
#include <numeric>
#include <span>
#include <sstream>

#include "harness/io/counted.hpp"
#include "harness/io/json_text.hpp"
#include "harness/io/now.hpp"
#include "harness/measure/work_record.hpp"
#include "harness/problem/random.hpp"
#include "harness/ranks/mpi_session.hpp"
#include "kernels/common/device.hpp"

namespace stepladder {

std::atomic<bool> interrupted = false;

namespace {

constexpr double window_seconds = 0.25;  // in which the CPU time of other processes is counted

// Runs on a device that are shorter are recorded into graphs: the host takes 2 to 10 us to launch
// one.
constexpr double longest_recorded = 1e-3;
constexpr std::int64_t most_runs_per_launch = 20;

// Keeps the time of each finished run, and its record as Google Benchmark's JSON writer prints it.
class Collector final : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs)
      seconds =
          run.iterations > 0 ? run.real_accumulated_time / static_cast<double>(run.iterations) : 0;
    reported = runs;
  }
  nlohmann::json as_json() {
    std::ostringstream text;
    benchmark::JSONReporter writer;
    writer.SetOutputStream(&text);
    text << "[\n";
    writer.ReportRuns(reported);
    text << "]";
    return parse_json(text.str());
  }
  double seconds = 0;
  std::vector<Run> reported;
};

bool uses_device(const Subject& subject) {
  return subject.clock == Clock::device || subject.on_device;
}

// Runs `work`, which calls the subject. The reason if it threw; of any rank, so that all ranks go
// on alike. A subject in which ranks wait for each other ends the run instead: the others wait
// inside it.
std::string failure_of(const Subject& subject, const std::function<void()>& work) {
  const MpiSession& mpi = mpi_session();
  std::string reason;
  try {
    work();
  } catch (const std::exception& error) {
    reason = error.what();
    if (reason.empty()) reason = "an error without a message";
    if (subject.clock == Clock::ranks && mpi.ranks() > 1)
      mpi.abort(fmt::format("{} threw while timed: {}", subject.name, reason));
  }
  return mpi.failure(reason);
}

}  // namespace

// One subject, its number of iterations, and the values of the last repetition besides its time.
struct Meter::Trial {
  const Subject* subject;
  double estimate = 0;  // seconds of one iteration
  std::int64_t iterations = 1;
  int planned = 0;      // repetitions that the budget allows
  int repetitions = 0;  // planned and replacements
  std::int64_t next_iteration = 0;
  // Graphs of runs, which take turns. Without any, each run is launched by itself.
  std::vector<std::unique_ptr<Recording>> recordings{};
  std::int64_t runs_per_launch = 1;
  std::size_t next_recording = 0;
  double elapsed = 0;  // by the clock of the kernel, within what the clock of the subject shows
  double shown = 0;    // by that clock, unless Google Benchmark reads it
  Counters* counters;
  EnergyCounter* energy;
  Sample last{};
  std::string error{};  // of the last repetition

  // The timed region. Device and rank clocks time all iterations together and give Google Benchmark
  // the time of each.
  void run(benchmark::State& state) {
    energy->start();
    counters->start();
    const std::uint64_t cycles = reference_cycles();
    if (subject->clock == Clock::wall) {
      while (state.KeepRunningBatch(iterations)) run_all();
    } else {
      const double each = time_together() / static_cast<double>(iterations);
      for (auto _ : state) state.SetIterationTime(each);
    }
    const auto count = static_cast<double>(iterations);
    last.reference_cycles = static_cast<double>(reference_cycles() - cycles) / count;
    last.counters = counters->stop();
    if (last.counters) *last.counters /= count;
    last.energy_joules = energy->stop();
    if (last.energy_joules) *last.energy_joules /= count;
    if (subject->clock == Clock::device) last.energy_joules.reset();  // the CPU only waits
  }

  // Of the repetition that comes next.
  std::int64_t last_iteration() const {
    if (recordings.empty()) return next_iteration + iterations - 1;
    const auto launches = static_cast<std::size_t>(iterations / runs_per_launch);
    const auto graph =
        static_cast<std::int64_t>((next_recording + launches - 1) % recordings.size());
    return (graph + 1) * runs_per_launch - 1;
  }

  void run_all() {
    const double start = now_of_kernel();
    for (std::int64_t i = 0; i < iterations; ++i) subject->run(next_iteration++);
    elapsed = now_of_kernel() - start;
  }

  double time_together() {
    if (subject->clock == Clock::device) return time_on_device(iterations);
    const MpiSession& mpi = mpi_session();
    const auto watched = mpi.watch(subject->name, static_cast<double>(iterations) * estimate);
    mpi.barrier();
    const double start = now();
    run_all();
    shown = now() - start;
    return mpi.max(shown);
  }

  double time_on_device(std::int64_t runs) {
    device()->start_timer();
    const double start = now_of_kernel();
    for (std::int64_t i = 0; i < runs; i += runs_per_launch) {
      if (recordings.empty())
        subject->run(next_iteration++);
      else
        recordings[next_recording++ % recordings.size()]->launch();
    }
    elapsed = now_of_kernel() - start;
    shown = device()->stop_timer();
    return shown;
  }

  // Records runs, one after the other, up to `most` in a graph, at least 3. All graphs together use
  // every set of operands, but for a few where the sets do not divide evenly, so that cold operands
  // stay cold.
  void record(std::int64_t most) {
    const auto sets = static_cast<std::int64_t>(subject->operand_sets);
    const std::int64_t graphs = (sets + most - 1) / most;
    runs_per_launch = sets <= most ? most / sets * sets : sets / graphs;
    for (std::int64_t graph = 0; graph < graphs; ++graph) {
      const Task runs{[&] {
                        for (std::int64_t i = 0; i < runs_per_launch; ++i)
                          subject->run(graph * runs_per_launch + i);
                      },
                      {}};
      recordings.push_back(device()->record(std::span(&runs, 1)));
    }
  }

  // Of a subject on a device that has run before. If it is short, records it where possible, and
  // improves the estimate: that of a single run contains its launch and the wait for its end.
  void prepare_short_runs(double repetition_seconds, Measured& result) {
    if (estimate > longest_recorded) return;
    const std::int64_t most = std::clamp<std::int64_t>(
        static_cast<std::int64_t>(repetition_seconds / estimate), 1, most_runs_per_launch);
    if (const std::string& why = subject->why_not_recorded; !why.empty()) {
      result.launches = "launched one by one: " + why;
    } else if (most > 2) {
      try {
        record(most);
        result.launches = fmt::format("launched as graphs of {} runs", runs_per_launch);
      } catch (const std::exception& error) {
        recordings.clear();
        runs_per_launch = 1;
        result.launches = fmt::format("launched one by one: {}", error.what());
      }
    }
    result.runs_per_launch = runs_per_launch;
    const std::int64_t all = recordings.empty() ? most : runs_per_launch * std::ssize(recordings);
    time_on_device(all);  // the first launch of a graph takes longer
    estimate = std::max(time_on_device(all) / static_cast<double>(all), 1e-8);
  }
};

namespace {

void register_trial(Meter::Trial& trial) {
  auto* registered =
      benchmark::RegisterBenchmark(trial.subject->name.c_str(), [&trial](benchmark::State& state) {
        trial.error = failure_of(*trial.subject, [&] { trial.run(state); });
        if (!trial.error.empty()) state.SkipWithError(trial.error.c_str());
      });
  registered->Iterations(trial.iterations);
  if (trial.subject->clock == Clock::wall)
    registered->UseRealTime();
  else
    registered->UseManualTime();
}

}  // namespace

std::vector<double> Measured::seconds() const {
  std::vector<double> found;
  for (const Sample& sample : samples)
    if (!sample.disturbed || is_disturbed()) found.push_back(sample.seconds);
  return found;
}

std::vector<std::vector<double>> Measured::seconds_by_visit() const {
  std::map<int, std::vector<double>> visits;
  for (const Sample& sample : samples)
    if (!sample.disturbed || is_disturbed()) visits[sample.visit].push_back(sample.seconds);
  std::vector<std::vector<double>> found;
  for (auto& [visit, seconds] : visits) found.push_back(std::move(seconds));
  return found;
}

Repeats repeats_of(double estimate, const MeasureOptions& options, std::int64_t multiple) {
  const double slot = options.budget_seconds / options.repetitions;
  Repeats found;
  found.iterations =
      options.iterations > 0
          ? options.iterations
          : std::clamp<std::int64_t>(static_cast<std::int64_t>(slot / estimate), 1, 1000000);
  found.iterations = std::max(found.iterations / multiple, std::int64_t{1}) * multiple;
  const double repetition = static_cast<double>(found.iterations) * estimate;
  found.repetitions = static_cast<int>(
      std::clamp<std::int64_t>(std::llround(options.budget_seconds / repetition),
                               estimate < options.once_above ? 2 : 1, options.repetitions));
  return found;
}

Meter::Meter(nlohmann::json& json, EnergyCounter energy)
    : json_(json),
      noise_(take_turns(mpi_session().ranks(), sysconf(_SC_NPROCESSORS_ONLN),
                        std::getenv("STEPLADDER_NETWORK") != nullptr)),
      energy_(std::move(energy)) {}

std::vector<Measured> Meter::measure(const std::vector<Subject>& subjects,
                                     const MeasureOptions& options) {
  std::vector<Measured> results(subjects.size());
  std::vector<Trial> trials(subjects.size());
  const MpiSession& mpi = mpi_session();

  for (std::size_t s = 0; s < subjects.size(); ++s) {
    Trial& trial = trials[s];
    trial.subject = &subjects[s];
    trial.counters = &counters_;
    trial.energy = &energy_;
    double estimate = mpi.max(subjects[s].estimate_seconds);
    const auto watched = mpi.watch(subjects[s].name, estimate);
    const ActiveSubject active(subjects[s].name, "timed", estimate);
    const bool on_device = subjects[s].clock == Clock::device;
    if (estimate < 0.1) {  // otherwise it is warm and known well enough
      const auto time_of_run = [&](bool is_warm) {
        double measured = 0;
        results[s].error = failure_of(subjects[s], [&] {
          if (is_warm) raise_clocks(subjects[s]);
          const double before = now();
          subjects[s].run(0);
          if (on_device) device()->synchronize();
          measured = now() - before;
        });
        return std::max(mpi.max(measured), 1e-8);
      };
      estimate = time_of_run(false);
      // One that takes the whole budget gets the fewest repetitions, however fast a warm run is.
      if (results[s].error.empty() &&
          (estimate < options.budget_seconds || uses_device(subjects[s])))
        estimate = time_of_run(true);
      // The least of five: a delay of the host must not forbid graphs, nor shorten them.
      for (int i = 1; on_device && i < 5 && estimate < 0.1 && results[s].error.empty(); ++i)
        estimate = std::min(estimate, time_of_run(true));
      if (results[s].error.empty() && subjects[s].after_runs)
        results[s].error = failure_of(subjects[s], [&] { subjects[s].after_runs(0, false); });
    }
    trial.estimate = estimate;
    if (on_device && mpi.ranks() == 1 && results[s].error.empty())
      results[s].error = failure_of(subjects[s], [&] {
        trial.prepare_short_runs(options.budget_seconds / options.repetitions, results[s]);
      });
    const Repeats repeats = repeats_of(trial.estimate, options, trial.runs_per_launch);
    trial.iterations = repeats.iterations;
    trial.repetitions = trial.planned = repeats.repetitions;
    if (trial.repetitions < options.repetitions)
      results[s].note = fmt::format("{} instead of {}: slow",
                                    counted(trial.repetitions, "repetition"), options.repetitions);
  }

  Random random(1);
  std::vector<std::size_t> order(subjects.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const int most_rounds = 2 * options.repetitions + 2;
  // Repetitions. A subject whose last one is marked late sits out the rounds of the others until
  // then.
  const auto left_of = [&](std::size_t s) {
    return results[s].error.empty()
               ? trials[s].repetitions - static_cast<int>(results[s].samples.size())
               : 0;
  };
  // A disturbed repetition is replaced by another one, at most as many as planned. Slow ones are
  // not: they would be disturbed again.
  const auto mark = [&](std::size_t s, Sample& sample) {
    sample.disturbed = true;
    ++tally_.disturbed;
    Trial& trial = trials[s];
    if (trial.planned == options.repetitions && trial.repetitions < 2 * trial.planned)
      ++trial.repetitions;
  };
  // What other processes use is known for some repetitions together.
  std::vector<std::pair<std::size_t, std::size_t>> recent;  // subject, sample
  const auto judge_recent = [&] {
    const bool busy = mpi.ranks() == 1 && neighbours_.are_busy();
    if (mpi.ranks() == 1) tally_.others_seconds += neighbours_.cpu_seconds();
    for (const auto& [s, i] : recent)
      if (Sample& sample = results[s].samples[i];
          busy && !sample.disturbed && subjects[s].clock != Clock::device)
        mark(s, sample);
    recent.clear();
    neighbours_.restart();
  };
  noise_.find_threads();
  neighbours_.restart();
  for (int round = 0; round < most_rounds; ++round) {
    bool any = false;
    // A new order each round: in a fixed order each subject would find the same caches each time.
    shuffle(order, random);
    for (const std::size_t s : order) {
      if (left_of(s) <= 0) continue;
      if (mpi.max(interrupted ? 1 : 0) > 0) throw Interrupted{};
      any = true;
      const Sample sample = repetition(trials[s], round, left_of(s) == 1, results[s].error);
      if (!results[s].error.empty()) continue;
      results[s].samples.push_back(sample);
      if (sample.disturbed) mark(s, results[s].samples.back());
      recent.emplace_back(s, results[s].samples.size() - 1);
      if (neighbours_.elapsed() > window_seconds) judge_recent();
    }
    if (std::none_of(order.begin(), order.end(), [&](std::size_t s) { return left_of(s) > 0; }))
      judge_recent();
    if (!any) break;
  }
  return results;
}

// A GPU that idles lowers its clocks, and needs some 0.1 s of work to raise them. Runs the subject
// for longer, unless the device had work in the last second, and waits until the device is idle.
void Meter::raise_clocks(const Subject& subject) {
  constexpr double longest_pause = 1, needed = 0.3, long_enough_to_wait_for = 1e-3;
  // Several ranks would not make the same number of runs.
  if (!uses_device(subject) || mpi_session().ranks() > 1) return;
  device()->synchronize();
  const double start = now();
  if (start - device_used_ > longest_pause)
    for (std::int64_t runs = 1; now() - start < needed;) {
      const double before = now();
      for (std::int64_t i = 0; i < runs; ++i) subject.run(i);
      device()->synchronize();
      if (now() - before < long_enough_to_wait_for) runs *= 2;
    }
  device_used_ = now();
}

Sample Meter::repetition(Trial& trial, int round, bool is_last, std::string& error) {
  const MpiSession& mpi = mpi_session();
  const std::int64_t ends_with = trial.last_iteration();
  error = failure_of(*trial.subject, [&] {
    raise_clocks(*trial.subject);
    if (trial.subject->before_repetition) trial.subject->before_repetition(ends_with, is_last);
  });
  if (!error.empty()) return {};
  const int team =
      mpi.ranks() == 1 && trial.subject->clock == Clock::wall ? trial.subject->threads : 1;
  const Cores before = probe_.probe(team);
  const ActiveSubject active(trial.subject->name, "timed",
                             static_cast<double>(trial.iterations) * trial.estimate);
  register_trial(trial);  // as the only one, so that Google Benchmark looks for no other
  noise_.start();
  Collector collector;
  benchmark::RunSpecifiedBenchmarks(&collector, nullptr, "all");
  Disturbance disturbance = noise_.stop();
  benchmark::ClearRegisteredBenchmarks();
  if (uses_device(*trial.subject)) device_used_ = now();
  const Cores cores = std::max(before, probe_.probe(team));
  disturbance.calibration_ratio = mpi.max(disturbance.calibration_ratio);
  error = trial.error;
  for (nlohmann::json& run : collector.as_json()) json_.push_back(std::move(run));
  if (error.empty() && trial.subject->after_runs)
    error = failure_of(*trial.subject, [&] { trial.subject->after_runs(ends_with, is_last); });

  Sample sample = trial.last;
  sample.round = round;
  sample.seconds = collector.seconds;
  sample.iterations = trial.iterations;
  sample.missing_seconds =
      trial.elapsed - (trial.subject->clock == Clock::wall
                           ? collector.seconds * static_cast<double>(trial.iterations)
                           : trial.shown);
  sample.calibration_ratio = disturbance.calibration_ratio;
  sample.stolen_seconds = disturbance.stolen;
  sample.queued_seconds = disturbance.queued;
  sample.cores = cores;
  const bool lost_a_core = cores == Cores::shared && !probe_.must_share();
  // A device does not see what slows the CPU down, which only waits for it.
  const bool on_cpu = trial.subject->clock != Clock::device;
  sample.disturbed = mpi.max(on_cpu && (disturbance.is_large() || lost_a_core) ? 1 : 0) > 0;
  tally_ += {.repetitions = 1,
             .elapsed_seconds = disturbance.elapsed,
             .stolen_seconds = disturbance.stolen};
  return sample;
}

std::string fault_of_clock(const Measured& measured) {
  constexpr double share = 0.02, around = 5e-5;  // a device starts its clock somewhat later
  std::vector<double> missing;
  for (const Sample& sample : measured.samples) {
    const double seconds = sample.seconds * static_cast<double>(sample.iterations);
    if (sample.missing_seconds > share * seconds + around)
      missing.push_back(sample.missing_seconds / (seconds + sample.missing_seconds));
  }
  if (2 * missing.size() <= measured.samples.size()) return {};
  return fmt::format(
      "the clock was changed: {:.0f} % of the time that went by is missing in {} of {} repetitions",
      100 * summarize(missing).median, missing.size(), measured.samples.size());
}

Summary ratio(const Measured& numerator, const Measured& denominator) {
  std::vector<double> above, below;
  bool rounds_in_common = false;
  for (const Sample& a : numerator.samples)
    for (const Sample& b : denominator.samples) {
      if (a.round != b.round) continue;
      rounds_in_common = true;
      if (a.disturbed || b.disturbed) continue;
      above.push_back(a.seconds);
      below.push_back(b.seconds);
    }
  if (!rounds_in_common && !numerator.samples.empty() && !denominator.samples.empty())
    return summarize(
        {summarize(numerator.seconds()).median / summarize(denominator.seconds()).median});
  if (above.size() < 2) return paired_ratio(numerator.seconds(), denominator.seconds());
  return paired_ratio(above, below);
}

}  // namespace stepladder

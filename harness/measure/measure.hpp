// Timing by Google Benchmark. The subjects take turns, one repetition each, so that the drift of
// the machine affects all equally.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/measure/cores.hpp"
#include "harness/measure/counters.hpp"
#include "harness/measure/energy.hpp"
#include "harness/measure/noise.hpp"
#include "harness/measure/statistics.hpp"

namespace stepladder {

enum class Clock { wall, device, ranks };  // ranks: time of the slowest rank between barriers

struct Subject {
  std::string name;  // unique among the subjects
  std::function<void(std::int64_t iteration)> run;
  Clock clock = Clock::wall;
  double estimate_seconds = 0;  // of one iteration, if known; saves two runs of slow subjects
  int threads = 1;
  bool on_device = false;  // also if another clock times it
  // With Clock::device.
  std::size_t operand_sets = 1;    // through which `iteration` rotates
  std::string why_not_recorded{};  // into a graph; empty: it may be
  // Not timed: before each repetition and after it, with the number of the iteration that it ends
  // with. Also after the runs that estimate the time.
  std::function<void(std::int64_t last_iteration, bool is_last)> before_repetition{}, after_runs{};
};

struct Sample {
  int round = 0;       // a round has one repetition of each subject
  int visit = 0;       // to the problem; see ProblemBench
  double seconds = 0;  // of one iteration
  std::int64_t iterations = 0;
  bool disturbed = false;  // the machine was slowed; another repetition replaces it if possible
  double calibration_ratio = 1;
  double stolen_seconds = 0;
  double queued_seconds = 0;     // of ready threads that waited for a core
  Cores cores = Cores::unknown;  // of several threads; the worse of before and after
  double reference_cycles = 0;   // of one iteration
  double missing_seconds = 0;    // of the repetition: by the clock of the kernel, minus its time
  std::optional<CounterValues> counters;  // of one iteration
  std::optional<double> energy_joules;    // of one iteration, of the CPU packages
};

struct MeasureOptions {
  int repetitions = 11;
  // For one subject; slow subjects get fewer repetitions, at least two, or one if an iteration
  // takes `once_above` seconds.
  double budget_seconds = 0.08;
  double once_above = std::numeric_limits<double>::infinity();
  std::int64_t iterations = 0;  // of a repetition; 0: as many as the budget allows
};

// Of a subject of which one iteration takes `estimate` seconds: as many iterations as the clock
// needs, a repetition's share of the budget, a multiple of `multiple`, and as many repetitions as
// the budget allows; see MeasureOptions.
struct Repeats {
  std::int64_t iterations = 1;
  int repetitions = 2;
};
Repeats repeats_of(double estimate, const MeasureOptions& options, std::int64_t multiple = 1);

struct Measured {
  std::vector<Sample> samples;
  std::string note;   // why there are fewer repetitions than requested, or empty
  std::string error;  // the exception of the subject; its samples do not count
  // Of a short subject on a device: runs in one launch, 1 without a graph, and a remark that says
  // so.
  std::int64_t runs_per_launch = 1;
  std::string launches;
  // Times of the undisturbed samples, or of all when too few are undisturbed.
  std::vector<double> seconds() const;
  std::vector<std::vector<double>> seconds_by_visit() const;  // the same times
  // Whether too few are.
  bool is_disturbed() const {
    const auto quiet = std::count_if(samples.begin(), samples.end(),
                                     [](const Sample& sample) { return !sample.disturbed; });
    return quiet < 2 || 2 * quiet < std::ssize(samples);
  }
};

// Why the clock that timed the repetitions is not to be believed: in most of them more time went by
// than it showed. Empty if it is.
std::string fault_of_clock(const Measured& measured);

// Ratios of times, round by round, over the rounds in which both were undisturbed. Without a round
// in common, the ratio of the medians.
Summary ratio(const Measured& numerator, const Measured& denominator);

// Set by SIGINT and SIGTERM: measure() then throws Interrupted between two repetitions.
extern std::atomic<bool> interrupted;
struct Interrupted {};

class Meter {
 public:
  // Appends Google Benchmark's JSON of each repetition to `json`, an array.
  explicit Meter(nlohmann::json& json, EnergyCounter energy = EnergyCounter());

  std::vector<Measured> measure(const std::vector<Subject>& subjects,
                                const MeasureOptions& options);

  NoiseGuard& guard() { return noise_; }
  const NoiseTally& noise() const { return tally_; }  // of all repetitions so far
  const Counters& counters() const { return counters_; }

  struct Trial;

 private:
  Sample repetition(Trial& trial, int round, bool is_last, std::string& error);
  void raise_clocks(const Subject& subject);

  nlohmann::json& json_;
  NoiseGuard noise_;
  Neighbours neighbours_;
  CoreProbe probe_;
  Counters counters_;
  EnergyCounter energy_;
  NoiseTally tally_;
  double device_used_ = -std::numeric_limits<double>::infinity();  // when it last had work
};

}  // namespace stepladder

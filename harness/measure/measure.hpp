// Timing by Google Benchmark, one repetition of every subject in turn, so that the machine's drift hits
// all alike.
#pragma once

#include <atomic>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/measure/counters.hpp"
#include "harness/measure/noise.hpp"
#include "harness/measure/statistics.hpp"

namespace stepladder {

enum class Clock { wall, device, ranks };  // ranks: between barriers, the slowest rank counts

struct Subject {
  std::string name;  // Google Benchmark's, unique among the subjects
  std::function<void(std::int64_t iteration)> run;
  Clock clock = Clock::wall;
  double estimate_seconds = 0;  // of one iteration, if known; spares slow subjects two runs
};

struct Sample {
  int round = 0;       // repetitions of one round follow each other directly
  double seconds = 0;  // of one iteration
  std::int64_t iterations = 0;
  bool disturbed = false;  // the machine was slowed; kept, marked, replaced if it could be
  double calibration_ratio = 1;
  double stolen_seconds = 0;
  double reference_cycles = 0;            // of one iteration
  std::optional<CounterValues> counters;  // of one iteration
};

struct MeasureOptions {
  int repetitions = 11;
  double budget_seconds =
      0.08;  // for one subject; slow subjects get fewer repetitions, at least two
};

struct Measured {
  std::vector<Sample> samples;
  std::string note;   // why there are fewer repetitions than asked for, or empty
  std::string error;  // what the subject threw; its samples do not count
  // The undisturbed samples' times, or all when too few are undisturbed.
  std::vector<double> seconds() const;
};

// The ratio of times round by round, of rounds in which both were undisturbed.
Summary ratio(const Measured& numerator, const Measured& denominator);

// Set by SIGINT and SIGTERM: measure() then throws Interrupted between two repetitions.
extern std::atomic<bool> interrupted;
struct Interrupted {};

class Meter {
 public:
  // Google Benchmark's own JSON of each repetition is appended to `json`, an array.
  explicit Meter(nlohmann::json& json) : json_(json) {}

  std::vector<Measured> measure(const std::vector<Subject>& subjects,
                                const MeasureOptions& options);

  const NoiseTally& noise() const { return tally_; }  // of all repetitions so far
  const Counters& counters() const { return counters_; }

  struct Trial;

 private:
  Sample repetition(Trial& trial, int round, std::string& error);

  nlohmann::json& json_;
  NoiseGuard noise_;
  Counters counters_;
  NoiseTally tally_;
};

}  // namespace stepladder

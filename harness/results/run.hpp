// What bench, step and train share: a run folder with its environment, ceilings and Google Benchmark
// records, on rank 0 of as many ranks as there are.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/measure/machine.hpp"
#include "harness/measure/measure.hpp"
#include "harness/results/results.hpp"

namespace stepladder {

struct RunOptions {
  std::filesystem::path directory;
  bool resume = false;
  std::string command;  // as the user typed it
  std::uint64_t seed = 1;
  std::string data = "none";  // what was trained on
  std::vector<int> threads;   // that ceilings are measured for
};

class Run {
 public:
  // Opens the folder and measures the ceilings it does not have yet. Throws before measuring when the
  // folder cannot take results.
  explicit Run(const RunOptions& options);
  // Writes environment.json and benchmark.json.
  void save();

  const Machine& machine() const { return machine_; }
  const std::vector<Ceiling>& ceilings() const { return ceilings_; }
  Meter& meter() { return *meter_; }
  bool writes() const { return folder_.has_value(); }  // rank 0
  const RunFolder& folder() const { return *folder_; }

 private:
  void note_noise();
  void load_or_measure_ceilings(const std::vector<int>& threads);

  Machine machine_;
  std::optional<RunFolder> folder_;
  nlohmann::json environment_;
  NoiseTally noise_before_;                           // of the commands that this one goes on from
  nlohmann::json records_ = nlohmann::json::array();  // of Google Benchmark
  std::vector<Ceiling> ceilings_;
  std::unique_ptr<Meter> meter_;
};

// SIGINT and SIGTERM end the run between two repetitions; a second one ends it at once.
void stop_on_signals();

}  // namespace stepladder

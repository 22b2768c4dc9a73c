// The run folder of bench, step and train, with environment, ceilings and Google Benchmark records.
// Only rank 0 writes.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/measure/gpu_monitor.hpp"
#include "harness/measure/links.hpp"
#include "harness/measure/machine.hpp"
#include "harness/measure/measure.hpp"
#include "harness/results/run_folder.hpp"

namespace stepladder {

struct RunOptions {
  std::filesystem::path directory;
  bool resume = false;
  std::string command;  // as the user typed it
  std::uint64_t seed = 1;
  std::string data = "none";  // what a network was trained on
  // Thread counts to measure ceilings for: those of rows with a roof.
  std::vector<int> threads{};
  // Processes of this command before, which were lost. Then no ceilings are measured.
  int restarts = 0;
};

class Run {
 public:
  // Opens the folder, writes environment.json and columns.json, and measures the ceilings that are
  // missing. Throws before measuring when the folder cannot be used.
  explicit Run(const RunOptions& options);
  // Writes environment.json, benchmark.json, and summary.json, step.json and inference.json with
  // the rows of the CSV files.
  void save();
  // Appends the records since the last call and the noise so far to benchmark.later.jsonl. After a
  // crash the next Run in the folder reads it; save() removes it.
  void keep();

  const Machine& machine() const { return machine_; }
  // last_level_cache_per_rank()
  std::size_t cache_per_rank() const { return cache_per_rank_; }
  const std::vector<Ceiling>& ceilings() const { return ceilings_; }
  // Measures the ceilings of these roofs again, on so many threads, and keeps the higher values.
  void raise_ceilings(int threads, const std::set<std::string>& roofs);
  // Between the ranks of this command. Collective: measures at the first call.
  const Links& links();
  // Collective: measures again if the last measurement is older than 5 seconds and three times what
  // it took, because links change as other users of the machine come and go. links.json has the
  // medians.
  void refresh_links();
  Meter& meter() { return *meter_; }
  bool writes() const { return folder_.has_value(); }  // rank 0
  const RunFolder& folder() const { return *folder_; }

 private:
  static std::filesystem::path calibration_file();
  void expect_calibration();
  void save_calibration();
  void set_noise();
  void read_kept();
  void write_records();
  void measure_links_again();
  void load_ceilings(const std::vector<int>& threads);
  std::vector<Ceiling> measured_ceilings(int threads);
  void write_ceilings();
  void measure_missing_ceilings(const std::vector<int>& threads);

  Machine machine_;
  std::size_t cache_per_rank_;
  std::optional<RunFolder> folder_;
  nlohmann::json environment_;
  NoiseTally noise_before_;                           // of earlier commands in this folder
  nlohmann::json records_ = nlohmann::json::array();  // of Google Benchmark
  std::size_t kept_records_ = 0;                      // of records_, in benchmark.later.jsonl
  std::vector<Ceiling> ceilings_;
  // Why there are none on so many threads.
  struct RefusedCeilings {
    int threads;
    double cores_of_others;    // that other processes used meanwhile
    std::string inconsistent;  // why_inconsistent() with those of one thread
  };
  std::vector<RefusedCeilings> refused_ceilings_;
  std::vector<Links> measured_links_;           // the last one is in use
  std::optional<nlohmann::json> links_before_;  // of earlier commands in this folder
  std::chrono::steady_clock::time_point links_measured_at_;
  std::chrono::steady_clock::duration links_took_{};
  GpuMonitor gpu_monitor_;
  std::unique_ptr<Meter> meter_;
};

// SIGINT and SIGTERM end the run between two repetitions; a second one ends it at once.
void stop_on_signals();

}  // namespace stepladder

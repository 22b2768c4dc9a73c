// The run of rungs on problems that bench and attribute start.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "bench/selection.hpp"
#include "harness/results/problem_bench.hpp"

namespace stepladder {

// What a run prints at its end.
enum class Report { tables, counts, json };

struct BenchCommand {
  Report report = Report::counts;
  double time_limit = 60;    // seconds
  double memory_limit = 0;   // GiB; 0: nine tenths of what is available
  bool after_crash = false;  // of ranks
  Selection selection;
  BenchOptions bench;
  std::string out;  // empty: a folder of its own, which is put here
  bool resume = false;
  // What the measuring process does after a run without failures; returns the exit status.
  std::function<int()> then;
};

// Registers options of the run that are neither of the selection nor of the problems.
void add_run_options(CLI::App& app, BenchCommand& command);
// Verifies, measures and writes the run folder, in a child process that is replaced if a variant
// ends it. Returns the exit status.
int run_bench(const std::shared_ptr<BenchCommand>& options);

}  // namespace stepladder

// The machine and the build a run was made on, as environment.json records them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/measure/ceilings.hpp"

namespace stepladder {

struct Machine {
  std::string cpu_model;
  int cores = 1;              // physical cores
  int threads_available = 1;  // processors in this process's affinity mask
  double memory_bytes = 0, memory_available_bytes = 0;
  CacheSizes caches;
  std::vector<std::string> isa;  // of the ones variants are built for
};

Machine detect_machine();

// Everything environment.json holds but the run's own facts (seed, data, commands, times).
nlohmann::json describe_environment(const Machine& machine);

// Threads do not move while timed: sets OMP_PLACES and OMP_PROC_BIND, unless the user has, and
// starts the program again with `arguments`, because they are read at program start.
void pin_threads(char** arguments);

// Undoes it, likewise, for two teams of threads at once: OpenMP would bind both to the same places.
// Throws std::runtime_error when it was the user who bound them.
void unpin_threads();

}  // namespace stepladder

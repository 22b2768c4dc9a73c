// The machine and the build of a run, for environment.json.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "harness/measure/ceilings.hpp"

namespace stepladder {

struct Machine {
  std::string cpu_model;      // "AMD EPYC (Zen 5)", as microarchitecture() has it
  int cores = 1;              // physical cores
  int threads_available = 1;  // see thread_limit()
  double memory_bytes = 0, memory_available_bytes = 0;
  std::string memory_limit;  // what leaves less than the machine has: "ulimit -v"; empty: nothing
  CacheSizes caches;
  int last_level_cache = -1;     // that all processors of this process share, or -1
  std::vector<std::string> isa;  // among those that variants are built for
};

Machine detect_machine();

// Of an x86 processor, by the numbers of /proc/cpuinfo: "Zen 5", or "family 26, model 200" of one
// that is not known here. Hypervisors shorten the model name, as to "AMD EPYC" for three of them,
// and some give the number of another model: one whose generation has no AMX, on a processor that
// has it, counts as unknown. Empty for other vendors than Intel and AMD. After the vendors'
// revision guides and the table of
// Linux, arch/x86/include/asm/intel-family.h.
std::string microarchitecture(std::string_view vendor, int family, int model, bool has_amx);

// Collective. The bytes of the last-level cache for each rank, which divides it with the ranks of
// its host that run on the same one; the most of any rank, so that all ranks have the same.
std::size_t last_level_cache_per_rank(const Machine& machine);

// The content of environment.json, without the facts of the run (seed, data, commands, times).
nlohmann::json describe_environment(const Machine& machine);

// Binds threads to cores, and lets idle teams sleep soon: sets OMP_PLACES, OMP_PROC_BIND and
// GOMP_SPINCOUNT unless the user has, and starts the program again with `arguments`, because OpenMP
// reads them at program start. Not for ranks: each would take the first core of its host. mpirun
// and the scheduler place them.
void pin_threads(char** arguments);

// Removes the binding in the same way. OpenMP would bind two concurrent thread teams to the same
// places. Throws std::runtime_error when the user has bound them.
void unpin_threads();

}  // namespace stepladder

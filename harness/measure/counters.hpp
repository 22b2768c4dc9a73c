// Hardware counters of the calling process through perf_event_open(2): cycles, instructions and cache
// misses, in user mode, threads started later included.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stepladder {

struct CounterValues {
  double cycles = 0, instructions = 0, cache_misses = 0;
};

class Counters {
 public:
  Counters();
  ~Counters();
  Counters(const Counters&) = delete;
  Counters& operator=(const Counters&) = delete;

  void start();
  std::optional<CounterValues> stop();  // nothing where the machine has no counters
  // Empty when they count, or why they do not ("perf_event_open: No such file or directory …").
  const std::string& why_unavailable() const { return why_unavailable_; }

 private:
  std::vector<int> files_;  // cycles, instructions, cache misses; empty when unavailable
  std::string why_unavailable_;
};

// Cycles of the time-stamp counter, which ticks at one rate whatever the clock does.
std::uint64_t reference_cycles();

}  // namespace stepladder

// Hardware counters of the process through perf_event_open(2): cycles, instructions and cache
// misses in user mode, including threads that start later.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stepladder {

struct CounterValues {
  double cycles = 0, instructions = 0, cache_misses = 0;
  CounterValues& operator/=(double count) {
    cycles /= count;
    instructions /= count;
    cache_misses /= count;
    return *this;
  }
};

class Counters {
 public:
  Counters();
  ~Counters();
  Counters(const Counters&) = delete;
  Counters& operator=(const Counters&) = delete;

  void start();
  std::optional<CounterValues> stop();  // nothing where the machine has no counters
  // Empty, or why there are no counters ("perf_event_open: No such file or directory …").
  const std::string& why_unavailable() const { return why_unavailable_; }

 private:
  std::vector<int> files_;  // cycles, instructions, cache misses; empty when unavailable
  std::string why_unavailable_;
};

// Cycles of the time-stamp counter, whose rate does not depend on the clock.
std::uint64_t reference_cycles();

}  // namespace stepladder

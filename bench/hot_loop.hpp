// The loop in which a call spends its time: a timer stops it some thousand times, and the
// disassembly of the function shows the loop around these places.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace stepladder {

struct HotLoop {
  struct Instruction {
    std::string text;  // in Intel's notation, addresses without symbols
    double share = 0;  // of the samples; a stalled instruction shows at itself or the next one
  };
  std::vector<Instruction> instructions;
  double share = 0;  // of the samples that lie in the loop
  int samples = 0;
  std::string function, file;
};

// Calls `run`, which must compute on the calling thread, for `seconds`. Needs nm and objdump.
// Throws std::runtime_error if they fail, or if the time is spent in no loop of a file (compiled at
// run time, or a call of the system).
HotLoop find_hot_loop(const std::function<void()>& run, double seconds);

// A line for each instruction with what it does, and how many there are of which kind.
void print_hot_loop(const HotLoop& loop);

}  // namespace stepladder

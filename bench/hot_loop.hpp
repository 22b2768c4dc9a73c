// The loop in which a call spends its time: a timer stops it some thousand times, the disassembly
// of the function says around what these places lie.
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

// Calls `run`, which must compute on the calling thread, for `seconds`. Needs nm and objdump. Throws
// std::runtime_error if they fail, or if the time is spent in no loop of a file (compiled at run
// time, or a call of the system).
HotLoop find_hot_loop(const std::function<void()>& run, double seconds);

// The innermost of the loops in a function that holds half of its samples, or most of them if none
// does. `listing`: of objdump -d -M intel --no-show-raw-insn; `samples`: addresses in it.
HotLoop hot_loop_of(const std::string& listing, const std::vector<std::uint64_t>& samples);

// What an instruction does, "adds 16 products to 16 sums"; empty for what is not known.
std::string meaning_of(const std::string& instruction);

// A line for each instruction, and how many there are of which kind.
void print_hot_loop(const HotLoop& loop);

}  // namespace stepladder

// all_reduce: every rank ends with the sum or the mean of the gradients of all ranks. The ranks are
// processes or the GPUs of one process.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "kernels/common/variant.hpp"

namespace stepladder::all_reduce {

enum class Operation { sum, mean };

struct Problem {
  Operation operation = Operation::sum;
  std::int64_t count = 0;  // floats, the same on every rank; may be 0
  int ranks = 1;
  bool gpus = false;  // the ranks are the first GPUs of this process
  // Consecutive ranks that form a node, for the two-level rungs; 0: those that share memory.
  int node_ranks = 0;
};

inline constexpr int max_gpus = 16;

class Window;  // mpi/window.hpp

struct Vectors {
  const float* input;
  float* output;
};

struct Operands {
  // If the ranks are processes: the vectors of this rank.
  const float* input;  // [count]; may be the same array as output (in place)
  float* output;       // [count]: sum over ranks of input, divided by ranks for the mean
  // The window that both vectors live in, at the same offsets on every rank; null if they do not.
  // Never null for a variant with .window.
  const Window* window = nullptr;
  // If the ranks are GPUs: the vectors of each, in its own memory.
  std::array<Vectors, max_gpus> of_gpu{};
};

struct AllReduce {
  static constexpr const char* name = "all_reduce";
  static constexpr const char* plain_layout = "flat";
  using Problem = all_reduce::Problem;
  using Operands = all_reduce::Operands;
};

using Plan = stepladder::Plan<Operands>;
using Registration = stepladder::Registration<AllReduce>;

std::string direction(const Problem& problem);  // sum or mean
std::string shape(const Problem& problem);      // the count
double flops(const Problem& problem);  // (ranks − 1) · count additions, over all ranks together
double bytes_read(const Problem& problem);     // the input of one rank once
double bytes_written(const Problem& problem);  // the output of one rank once

// 2 (p−1)/p · size: the bytes that each rank of a bandwidth-optimal algorithm sends. Bus bandwidth
// is this divided by the time (nccl-tests, doc/PERFORMANCE.md).
double bus_bytes(const Problem& problem);

}  // namespace stepladder::all_reduce

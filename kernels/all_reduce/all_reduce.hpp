// all_reduce: every rank ends with the sum, or the mean, of the gradients of all ranks. The ranks are
// processes, or the GPUs of one process.
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
  bool gpus = false;  // the ranks are this process's first GPUs
};

inline constexpr int most_gpus = 16;

struct Vectors {
  const float* input;
  float* output;
};

struct Operands {
  const float* input;  // [count], this rank's; may be the same array as output (in place)
  float* output;       // [count]: sum over ranks of input, divided by ranks for the mean
  // Instead of these, where the ranks are GPUs: each one's, in its own memory.
  std::array<Vectors, most_gpus> of_gpu{};
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

// Bytes that a bandwidth-optimal algorithm must send from each rank, 2 (p−1)/p · size: bus bandwidth is
// this over the time (NCCL's definition, nccl-tests PERFORMANCE.md).
double bus_bytes(const Problem& problem);

}  // namespace stepladder::all_reduce

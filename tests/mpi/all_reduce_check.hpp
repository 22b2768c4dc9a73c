// Whether an all-reduce variant is right: run on known inputs, between guard zones, several times.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/io/mpi_session.hpp"
#include "kernels/all_reduce/all_reduce.hpp"

namespace stepladder::all_reduce {

// Inputs of one run and what must come out of it.
struct Sample {
  std::vector<float> input;      // [count], this rank's
  std::vector<double> expected;  // [count]
  std::vector<double> bound;     // [count], of |output - expected|
};

// Integers from -8 to 8: every partial sum is exact, so the bound is 0 in any order of summation.
Sample integer_sample(const Problem& problem, int rank, std::uint64_t seed);

// Uniform(-1, 1): |output - expected| <= gamma(ranks + 1) sum |input|, over ranks for the mean,
// with gamma(k) = k u / (1 - k u) and u = 2^-24 (Higham, Accuracy and Stability of Numerical
// Algorithms).
Sample uniform_sample(const Problem& problem, int rank, std::uint64_t seed);

// Makes one plan and runs it on each sample in turn, in place or not. Collective. Returns the first
// fault found on this rank, or that another rank found one; empty when all is well on every rank.
// Throws what the factory throws.
std::string fault_of(stepladder::Factory<AllReduce> factory, const Problem& problem, bool in_place,
                     const std::vector<Sample>& samples, const MpiSession& session);

}  // namespace stepladder::all_reduce

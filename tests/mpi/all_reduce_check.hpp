// Checks an all-reduce variant: known inputs, guard zones, several runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/ranks/mpi_session.hpp"
#include "kernels/all_reduce/all_reduce.hpp"

namespace stepladder::all_reduce {

// The input and the expected result of one run.
struct Sample {
  std::vector<float> input;       // [count], this rank's
  std::vector<double> expected;   // [count]
  std::vector<double> bound;      // [count], of |output - expected|
  std::vector<double> magnitude;  // [count], sum of |input| over the ranks, or its mean
};

// Integers from -8 to 8: every partial sum is exact, so the bound is 0 in any order of summation.
Sample integer_sample(const Problem& problem, int rank, std::uint64_t seed);

// Uniform(-1, 1): |output - expected| <= gamma(ranks + 1) sum |input|, over ranks for the mean,
// with gamma(k) = k u / (1 - k u) and u = 2^-24 (Higham, Accuracy and Stability of Numerical
// Algorithms).
Sample uniform_sample(const Problem& problem, int rank, std::uint64_t seed);

// Runs one plan on each sample, in place or not. Collective. Returns the first fault of this rank,
// or that another rank found one; empty if there is none. Rethrows the exceptions of the factory.
// operand_error: of the variant; that share of the magnitude is added to the bound.
// in_window: the vectors lie in a window that the ranks share.
std::string fault_of(stepladder::Factory<AllReduce> factory, const Problem& problem, bool in_place,
                     const std::vector<Sample>& samples, const MpiSession& session,
                     double operand_error = 0, bool in_window = false);

// The samples with what a plan of the variant computes from them, not in place, as the expected
// results: for variants whose results satisfy no bound, but must not depend on where they are.
std::vector<Sample> recorded(stepladder::Factory<AllReduce> factory, const Problem& problem,
                             std::vector<Sample> samples, const MpiSession& session);

}  // namespace stepladder::all_reduce

// What each technique buys, whatever was there before: from the times of all combinations of n
// techniques, the corners of a lattice (kernels/common/lattice.hpp).
//
// The gain of technique i after the set S is T(S) / T(S + i). It depends on S: vectors gain little
// where memory is the limit. Its mean over all orders in which the techniques can be added is the
// Shapley value of log T (Shapley 1953):
//   log average_i = sum over S without i of |S|! (n - |S| - 1)! / n! · log(T(S) / T(S + i))
// It is the only division of the whole gain that treats all techniques alike and whose factors
// multiply to it: product of average_i = T(none) / T(all).
#pragma once

#include <span>
#include <string>
#include <vector>

namespace stepladder {

// Median time of a corner, with its 95 % interval.
struct CornerTime {
  double seconds, ci_low, ci_high;
};

// Times as fast, with the 95 % interval. Logarithms of times are taken as independent and normal,
// with the standard errors of the rows.
struct Factor {
  double value, low, high;
};

// Quantile of the normal distribution for a 95 % interval.
inline constexpr double two_sided_95 = 1.959964;

// Standard error of the logarithm of a time whose 95 % interval is low .. high.
double log_error(double low, double high);

struct Attribution {
  struct Technique {
    Factor alone;    // with nothing else
    Factor last;     // with everything else in place
    Factor average;  // over all orders
    Factor least, most;
    unsigned least_after, most_after;  // bits of the techniques that were there before
  };
  // Above 1: together they gain more than the product of their gains; mean over the sets of others
  // (the interaction index of Grabisch and Roubens 1999).
  struct Pair {
    int first, second;
    Factor together;
  };
  std::vector<Technique> techniques;
  std::vector<Pair> pairs;
  Factor total;           // T(none) / T(all)
  Factor fastest;         // T(none) / T of the fastest corner
  unsigned fastest_with;  // bits of its techniques
};

// corners: 2^n positive times, n >= 1; bit i of the index: technique i is on.
Attribution attribute(std::span<const CornerTime> corners);

// The names of the set bits, such as "vectors and tile"; "nothing" for none.
std::string names_of(unsigned bits, std::span<const std::string> names);

}  // namespace stepladder

// Verifies a compressor with error feedback. Its single results satisfy no bound, but their sum does.
//
// Rank r sends C(g + e), where g is its input and e its residual, and keeps what C loses:
// e' = g + e - C(g + e). So the outputs of all calls together differ from the exact results by the
// last residuals alone. With q = sqrt(1 - contraction), |v - C(v)| <= q |v| gives
//
//     sum_r |e'| <= q (sum_r |e| + sum_r |g|)
//
// With constant inputs that is at most q / (1 - q) sum_r |g| (Stich, Cordonnier and Jaggi, 2018;
// Karimireddy et al., 2019): the mean of T outputs converges to the exact result with 1/T. With zero
// inputs the residual falls with q^T. The check therefore makes a few calls with the inputs and then
// calls with zeros, until the bound is below 1/16 of a typical element of the results, or rounding
// errors dominate: a variant that returns zeros, loses an element or keeps no residual fails.
//
// If the sum of the C(v) is compressed again, then |C(v)| <= |v|, and its residual E satisfies
// |E'| <= q (|E| + sum_r |g + e|).
#pragma once

#include "harness/problem/case.hpp"

namespace stepladder {

// Calls with the inputs, the first of which has been made.
inline constexpr int calls_with_inputs = 4;

// Elements times calls, at most, but 8 calls. Vectors of more than 2^17 elements may reach it: then
// the bound stays larger, and a fault must be larger to be found. A variant that returns zeros is
// found on 4 ranks up to 2^20 elements.
inline constexpr double most_work = 0x1p27;

// `runner` is a new plan that ran once, and `first` is the check of that run. The same calls on all
// ranks. error_ratio: the distance between the sums of results and expected results, over its bound.
Check check_feedback(Case& problem, const VariantInfo& variant, Runner& runner, Check first);

}  // namespace stepladder

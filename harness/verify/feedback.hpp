// Verifies a compressor with error feedback. Its single results satisfy no bound, their sum does.
//
// Rank r sends C(g + e), where g is its input and e its residual, and keeps what C loses:
// e' = g + e - C(g + e). So the outputs of all calls together differ from the exact results by the
// last residuals alone. With q = sqrt(1 - contraction), |v - C(v)| <= q |v| gives
//
//     sum_r |e'| <= q (sum_r |e| + sum_r |g|)
//
// With constant inputs that is at most q / (1 - q) sum_r |g| (Stich, Cordonnier and Jaggi, 2018;
// Karimireddy et al., 2019): the mean of T outputs converges to the exact result with 1/T. With
// zero inputs the residual falls with q^T. So the check makes a few calls with the inputs and then
// calls with zeros, until the bound is below 1/8 of a typical element: a variant that returns
// zeros, loses an element of more than that, or keeps no residual fails.
#pragma once

#include "harness/problem/case.hpp"

namespace stepladder {

// Calls with the inputs, the first of which has been made.
inline constexpr int calls_with_inputs = 4;

// Long vectors get fewer calls. Beyond `usual_work`, elements times calls, they end when the bound
// is below half the norm of the results: a variant that returns zeros, keeps no residual or loses
// more than a quarter of the vector still fails. At `most_work` they end anyway. On 4 ranks, zeros
// may satisfy the bound from 1,490,000 elements on with a contraction of 1/64, from 750,000 with
// 1/128, and from 139,000 with 1/64 twice. Guard zones, inputs, NaN and equal bits are checked in
// every call nevertheless.
inline constexpr double usual_work = 0x1p21;
inline constexpr double most_work = 0x1p27;
inline constexpr int fewest_calls = 8;

// `runner` is a new plan that ran once, and `first` is the check of that run. The same calls on all
// ranks. error_ratio: the distance of the sum of the results from the expected one over its bound.
Check check_feedback(Case& problem, const VariantInfo& variant, Runner& runner, Check first);

}  // namespace stepladder

// The arithmetic that the rungs share. A rung's idea is who sends what to whom; this loop is the
// same in all of them, and reduce.cpp is compiled with automatic vectorisation for that reason.
#pragma once

#include <cstdint>

namespace stepladder::all_reduce {

// sum[i] = a[i] + b[i], all [count]. `sum` may be `a` or `b` itself, but not overlap them
// otherwise.
void add(const float* a, const float* b, float* sum, std::int64_t count);

// values[i] /= divisor: the mean from the sum. Not a product with 1/divisor, which rounds twice.
void divide(float* values, std::int64_t count, float divisor);

// A sum over one rank: to[i] = from[i]. Both may be the same array.
void copy(const float* from, float* to, std::int64_t count);

}  // namespace stepladder::all_reduce

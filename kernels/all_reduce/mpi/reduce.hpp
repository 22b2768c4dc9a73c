// The arithmetic of the MPI rungs. Rungs differ in communication alone, so all share these loops,
// and reduce.cpp is compiled with automatic vectorization.
#pragma once

#include <cstdint>

namespace stepladder::all_reduce {

// sum[i] = a[i] + b[i]; a, b, sum: [count]. `sum` may be `a` or `b`, but must not overlap them
// partially.
void add(const float* a, const float* b, float* sum, std::int64_t count);

// values[i] /= divisor. A product with 1/divisor would round twice.
void divide(float* values, std::int64_t count, float divisor);

// to[i] = from[i]. Both may be the same array.
void copy(const float* from, float* to, std::int64_t count);

}  // namespace stepladder::all_reduce

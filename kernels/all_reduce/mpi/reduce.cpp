#include "kernels/all_reduce/mpi/reduce.hpp"

#include <algorithm>

namespace stepladder::all_reduce {

void add(const float* a, const float* b, float* sum, std::int64_t count) {
#pragma GCC ivdep  // sum[i] depends on a[i] and b[i] alone, even if sum is a or b
  for (std::int64_t i = 0; i < count; ++i) sum[i] = a[i] + b[i];
}

void divide(float* values, std::int64_t count, float divisor) {
  for (std::int64_t i = 0; i < count; ++i) values[i] /= divisor;
}

void copy(const float* from, float* to, std::int64_t count) {
  if (from != to) std::copy_n(from, count, to);
}

}  // namespace stepladder::all_reduce

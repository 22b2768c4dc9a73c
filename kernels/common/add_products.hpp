// The inner loop of the fp64 references of matmul and convolution.
#pragma once

#include <cmath>
#include <cstdint>

namespace stepladder {

// result[i · step] += a[i · a_step] · b[i · b_step] for i < count, and the absolute products to
// magnitude. Products and sums are fp64. The first two cases are the most frequent ones: a row of
// results, and a dot product. Their steps are constants, so the compiler vectorizes them.
inline void add_products(std::int64_t count, double* __restrict result,
                         double* __restrict magnitude, std::int64_t step, const float* a,
                         std::int64_t a_step, const float* b, std::int64_t b_step) {
  if (step == 1 && a_step == 1 && b_step == 0) {
    const double factor = *b;
    for (std::int64_t i = 0; i < count; ++i) {
      const double product = a[i] * factor;
      result[i] += product;
      magnitude[i] += std::abs(product);
    }
  } else if (step == 0 && a_step == 1 && b_step == 1) {
    double sum = 0, absolute = 0;
#pragma omp simd reduction(+ : sum, absolute)
    for (std::int64_t i = 0; i < count; ++i) {
      const double product = double{a[i]} * b[i];
      sum += product;
      absolute += std::abs(product);
    }
    *result += sum;
    *magnitude += absolute;
  } else {
    for (std::int64_t i = 0; i < count; ++i) {
      const double product = double{a[i * a_step]} * b[i * b_step];
      result[i * step] += product;
      magnitude[i * step] += std::abs(product);
    }
  }
}

}  // namespace stepladder

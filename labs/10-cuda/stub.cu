// Lab 10: C = A · B, row-major, one thread for each element of C. Neighbouring threads of a warp
// take neighbouring ROWS.
#include "lab.hpp"

__global__ void multiply(std::int64_t m, std::int64_t n, std::int64_t k, Global<const float> a,
                         Global<const float> b, Global<float> c) {
  const std::int64_t t = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (t >= m * n) return;
  const std::int64_t i = t % m, j = t / m;
  float sum = 0;
  for (std::int64_t l = 0; l < k; ++l) sum += a[i * k + l] * b[l * n + j];
  c[i * n + j] = sum;
}

Grid grid_of(std::int64_t m, std::int64_t n) {
  constexpr unsigned threads = 256;
  return {{static_cast<unsigned>((m * n + threads - 1) / threads)}, {threads}};
}

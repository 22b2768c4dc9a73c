#include "kernels/matmul/matmul.hpp"

#include <fmt/format.h>

namespace stepladder::matmul {

std::string direction(const Problem& p) {
  if (p.transpose_a) return p.transpose_b ? "both_transposed" : "weight_gradient";
  return p.transpose_b ? "input_gradient" : "forward";
}

std::string shape(const Problem& p) {
  return fmt::format("{}x{}x{} {}{}", p.m, p.n, p.k, p.transpose_a ? 't' : 'n',
                     p.transpose_b ? 't' : 'n');
}

double flops(const Problem& p) {
  return 2.0 * static_cast<double>(p.m * p.n) * static_cast<double>(p.k);
}
double bytes_read(const Problem& p) { return 4.0 * static_cast<double>(p.m * p.k + p.k * p.n); }
double bytes_written(const Problem& p) { return 4.0 * static_cast<double>(p.m * p.n); }

}  // namespace stepladder::matmul

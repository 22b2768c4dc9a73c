#include "kernels/matmul/matmul.hpp"

#include <fmt/format.h>

namespace stepladder::matmul {

void Matmul::require(const Problem& problem, const VariantInfo& info) {
  if (problem.epilogue != Epilogue::none && !info.epilogue)
    throw Unsupported("computes the product alone, no bias or ReLU");
}

std::string direction(const Problem& p) {
  const std::string name = p.transpose_a   ? p.transpose_b ? "both_transposed" : "weight_gradient"
                           : p.transpose_b ? "input_gradient"
                                           : "forward";
  return name + (p.epilogue == Epilogue::bias        ? "_bias"
                 : p.epilogue == Epilogue::bias_relu ? "_bias_relu"
                                                     : "");
}

std::string shape(const Problem& p) {
  return fmt::format("{}x{}x{} {}{}{}{}", p.m, p.n, p.k, p.transpose_a ? 't' : 'n',
                     p.transpose_b ? 't' : 'n', p.epilogue != Epilogue::none ? " bias" : "",
                     p.epilogue == Epilogue::bias_relu ? " relu" : "");
}

double flops(const Problem& p) {
  const int more = p.epilogue == Epilogue::bias_relu ? 2 : p.epilogue == Epilogue::bias ? 1 : 0;
  return static_cast<double>(p.m * p.n) * static_cast<double>(2 * p.k + more);
}
double bytes_read(const Problem& p) {
  return 4.0 *
         static_cast<double>(p.m * p.k + p.k * p.n + (p.epilogue != Epilogue::none ? p.n : 0));
}
double bytes_written(const Problem& p) { return 4.0 * static_cast<double>(p.m * p.n); }

}  // namespace stepladder::matmul

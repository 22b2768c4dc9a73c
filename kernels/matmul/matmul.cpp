#include "kernels/matmul/matmul.hpp"

#include <fmt/format.h>

namespace stepladder::matmul {
namespace {

// The epilogue in a name, each word after `before`: "_bias_relu".
std::string suffix(Epilogue epilogue, char before) {
  switch (epilogue) {
    case Epilogue::none:
      return "";
    case Epilogue::bias:
      return fmt::format("{}bias", before);
    case Epilogue::bias_relu:
      return fmt::format("{0}bias{0}relu", before);
    case Epilogue::relu_gradient:
      return fmt::format("{0}relu{0}gradient", before);
  }
  return "";
}

// Elements of C that are computed.
double elements(const Problem& p) {
  const auto m = static_cast<double>(p.m), n = static_cast<double>(p.n);
  return p.triangle ? n * (n + 1) / 2 : m * n;
}

}  // namespace

void Matmul::require(const Problem& problem, const VariantInfo& info) {
  if (problem.epilogue != Epilogue::none && !info.epilogue)
    throw Unsupported("supports no epilogue (bias, ReLU)");
  if (problem.epilogue == Epilogue::relu_gradient && info.place != Place::cuda)
    throw Unsupported("supports bias and ReLU, but not the gradient of a ReLU");
  if (problem.ranks > 1 && !info.over_ranks) throw Unsupported("its product is of one process");
  if (problem.ranks == 1 && info.over_ranks)
    throw Unsupported("its product is of several processes: start them with mpirun");
  if (problem.triangle && !info.triangle)
    throw Unsupported("computes whole matrices, not a triangle");
}

std::string direction(const Problem& p) {
  if (p.triangle) return "triangle";
  const std::string name = p.transpose_a   ? p.transpose_b ? "both_transposed" : "backward_weights"
                           : p.transpose_b ? "backward_data"
                                           : "forward";
  return name + suffix(p.epilogue, '_');
}

std::string shape(const Problem& p) {
  return fmt::format("{}x{}x{} {}{}{}{}", p.m, p.n, p.k, p.transpose_a ? 't' : 'n',
                     p.transpose_b ? 't' : 'n', suffix(p.epilogue, ' '),
                     p.triangle ? " triangle" : "");
}

double flops(const Problem& p) {
  const int more = p.epilogue == Epilogue::bias_relu ? 2 : p.epilogue == Epilogue::none ? 0 : 1;
  return elements(p) * static_cast<double>(2 * p.k + more);
}
double bytes_read(const Problem& p) {
  const std::int64_t more = has_bias(p.epilogue)                    ? p.n
                            : p.epilogue == Epilogue::relu_gradient ? p.m * p.n
                                                                    : 0;
  return 4.0 * static_cast<double>(p.m * p.k + p.k * p.n + more);
}
double bytes_written(const Problem& p) { return 4.0 * elements(p); }

}  // namespace stepladder::matmul

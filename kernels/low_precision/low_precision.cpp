#include "kernels/low_precision/low_precision.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>
#include <vector>

#include "kernels/common/integer_math.hpp"
#include "kernels/low_precision/formats.hpp"

namespace stepladder::low_precision {

const char* name_of(Format format) {
  switch (format) {
    case Format::bf16:
      return "bf16";
    case Format::fp16:
      return "fp16";
    case Format::int8:
      return "int8";
    case Format::binary:
      return "binary";
  }
  return "";
}

std::int64_t row_bytes(const Problem& p) {
  switch (p.format) {
    case Format::bf16:
    case Format::fp16:
      return 2 * p.k;
    case Format::int8:
      return p.k;
    case Format::binary:
      return 8 * ceil_div(p.k, std::int64_t{64});
  }
  return 0;
}

std::string direction(const Problem& p) { return name_of(p.format); }

std::string shape(const Problem& p) { return fmt::format("{}x{}x{}", p.m, p.n, p.k); }

double flops(const Problem& p) {
  return 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
}

double bytes_read(const Problem& p) { return static_cast<double>((p.m + p.n) * row_bytes(p)); }

double bytes_written(const Problem& p) { return 4.0 * static_cast<double>(p.m * p.n); }

void validate(const Problem& p) {
  for (const auto& [what, value] : {std::pair{"m", p.m}, {"n", p.n}, {"k", p.k}})
    if (value < 1)
      throw std::invalid_argument(fmt::format("{} is {}; at least 1 is needed", what, value));
  const std::int64_t most = p.format == Format::int8     ? std::int64_t{1} << 16
                            : p.format == Format::binary ? std::int64_t{1} << 24
                                                         : p.k;
  if (p.k > most)
    throw std::invalid_argument(
        fmt::format("k is {}; {} needs at most {}", p.k, name_of(p.format), most));
}

void widen(const Problem& p, const void* values, std::int64_t rows, bool is_a, float* to) {
  if (p.format == Format::binary) {
    const auto* words = static_cast<const std::uint64_t*>(values);
    const std::int64_t words_of_row = row_bytes(p) / 8;
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t l = 0; l < p.k; ++l)
        to[i * p.k + l] = (words[i * words_of_row + l / 64] >> (l % 64) & 1) != 0 ? 1.0F : -1.0F;
    return;
  }
  for_types(p.format, [&]<class A, class B, class>() {
    for (std::int64_t i = 0; i < rows * p.k; ++i)
      to[i] = is_a ? static_cast<float>(static_cast<const A*>(values)[i])
                   : static_cast<float>(static_cast<const B*>(values)[i]);
  });
}

// Row by row of C, with B as [k, n]: the compiler vectorizes over the columns.
void reference(const Problem& p, const Operands& o, double* c, double* magnitude) {
  std::vector<float> a(static_cast<std::size_t>(p.m * p.k)), b(static_cast<std::size_t>(p.n * p.k)),
      by_k(b.size());
  widen(p, o.a, p.m, true, a.data());
  widen(p, o.b, p.n, false, b.data());
  for (std::int64_t j = 0; j < p.n; ++j)
    for (std::int64_t l = 0; l < p.k; ++l)
      by_k[static_cast<std::size_t>(l * p.n + j)] = b[static_cast<std::size_t>(j * p.k + l)];
  std::fill_n(c, p.m * p.n, 0.0);
  std::fill_n(magnitude, p.m * p.n, 0.0);
  for (std::int64_t i = 0; i < p.m; ++i)
    for (std::int64_t l = 0; l < p.k; ++l) {
      const double x = a[static_cast<std::size_t>(i * p.k + l)];
      const float* y = by_k.data() + l * p.n;
      for (std::int64_t j = 0; j < p.n; ++j) {
        c[i * p.n + j] += x * y[j];
        magnitude[i * p.n + j] += std::abs(x * y[j]);
      }
    }
}

}  // namespace stepladder::low_precision

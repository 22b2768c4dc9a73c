// The definition: each element of C is the dot product of a row of A and a row of B. Every narrow
// element is converted when it is read. Of bits, 64 products are one exclusive or: the sum is k
// less two for each pair of bits that differ.
#include <bit>

#include "kernels/low_precision/formats.hpp"

namespace stepladder::low_precision {
namespace {

template <class A, class B, class Sum>
void multiply_numbers(const Problem& p, const Operands& o) {
  for (std::int64_t i = 0; i < p.m; ++i)
    for (std::int64_t j = 0; j < p.n; ++j) {
      const A* a = static_cast<const A*>(o.a) + i * p.k;
      const B* b = static_cast<const B*>(o.b) + j * p.k;
      Sum sum = 0;
#pragma omp simd reduction(+ : sum)
      for (std::int64_t l = 0; l < p.k; ++l) sum += static_cast<Sum>(a[l]) * static_cast<Sum>(b[l]);
      o.c[i * p.n + j] = static_cast<float>(sum);
    }
}

void multiply_bits(const Problem& p, const Operands& o) {
  const std::int64_t words = row_bytes(p) / 8;
  for (std::int64_t i = 0; i < p.m; ++i)
    for (std::int64_t j = 0; j < p.n; ++j) {
      const auto* a = static_cast<const std::uint64_t*>(o.a) + i * words;
      const auto* b = static_cast<const std::uint64_t*>(o.b) + j * words;
      std::int64_t different = 0;
      for (std::int64_t w = 0; w < words; ++w) different += std::popcount(a[w] ^ b[w]);
      o.c[i * p.n + j] = static_cast<float>(p.k - 2 * different);
    }
}

void multiply(const Problem& p, const Operands& o) {
  if (p.format == Format::binary) return multiply_bits(p, o);
  for_types(p.format, [&]<class A, class B, class Sum>() { multiply_numbers<A, B, Sum>(p, o); });
}

constexpr VariantInfo info{
    .name = "serial",
    .technique = Technique::serial,
    .adds = "the definition: one dot product per element of C",
};

const Registration registration{info, plan_of<multiply>};

}  // namespace
}  // namespace stepladder::low_precision

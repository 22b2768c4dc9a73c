// The product of operands that are rounded to bf16 when they are packed, for packed_bf16,
// packed_bf16_openmp and packed_bf16_amx. C and its sums stay fp32.
#pragma once

#include "kernels/common/cpu/extensions.hpp"
#include "kernels/matmul/cpu/packed/narrow_product.hpp"

namespace stepladder::matmul {

// The operands as a source of the packed product (kernels/common/cpu/narrow/packed_product.hpp).
class RoundedOperands {
 public:
  using Operands = matmul::Operands;
  using Vectors = __m512i[narrow::tile_side];

  explicit RoundedOperands(const Problem& problem) : p_(problem) {}

  std::int64_t m() const { return p_.m; }
  std::int64_t n() const { return p_.n; }
  std::int64_t k() const { return p_.k; }
  std::int64_t steps() const { return ceil_div(p_.k, k_of_step); }
  double flops() const { return matmul::flops(p_); }
  float* c(const Operands& o) const { return o.c; }

  STEPLADDER_DOT_TARGET void pack_a(const Operands& o, Range tiles, std::byte* to) const {
    const Range rows{tiles.begin * narrow::tile_side,
                     std::min(p_.m, tiles.end * narrow::tile_side)};
    if (p_.transpose_a)
      pack<false, true>(o.a, p_.m, rows, to);
    else
      pack<true, false>(o.a, p_.k, rows, to);
  }

  STEPLADDER_DOT_TARGET void pack_b(const Operands& o, Range columns, std::byte* to) const {
    if (p_.transpose_b)
      pack<true, true>(o.b, p_.k, columns, to);
    else
      pack<false, false>(o.b, p_.n, columns, to);
  }

 private:
  static constexpr std::int64_t k_of_step = 32;

  // The tiles of rows of op(A), or of columns of op(B). along_k: they run along k in memory;
  // otherwise steps of k do, and a cache line belongs to the tiles of one step.
  template <bool along_k, bool transposes>
  STEPLADDER_DOT_INLINE void pack(const float* values, std::int64_t row, Range range,
                                  std::byte* to) const {
    const std::int64_t tiles = ceil_div(range.end - range.begin, narrow::tile_side);
    const auto pack_tile = [&](std::int64_t t, std::int64_t s) STEPLADDER_DOT_TARGET {
      const Range part{range.begin + t * narrow::tile_side, range.end};
      Vectors v;
      if constexpr (along_k)
        load_along_k(values, row, part, s * k_of_step, v);
      else
        load_across_k(values, row, part, s * k_of_step, v);
      if constexpr (transposes) narrow::transpose_groups(v);
      narrow::store_tile(v, to + (t * steps() + s) * narrow::tile_bytes);
    };
    if constexpr (along_k) {
      for (std::int64_t t = 0; t < tiles; ++t)
        for (std::int64_t s = 0; s < steps(); ++s) pack_tile(t, s);
    } else {
      for (std::int64_t s = 0; s < steps(); ++s)
        for (std::int64_t t = 0; t < tiles; ++t) pack_tile(t, s);
    }
  }

  // v[i]: of the row rows.begin + i, its elements l to l + 31.
  STEPLADDER_DOT_INLINE void load_along_k(const float* values, std::int64_t row, Range rows,
                                          std::int64_t l, Vectors& v) const {
    const __mmask16 low = narrow::first_lanes(p_.k - l),
                    high = narrow::first_lanes(p_.k - l - narrow::lanes);
    for (std::int64_t i = 0; i < narrow::tile_side; ++i) {
      const float* from = values + (rows.begin + i) * row + l;
      v[i] = rows.begin + i < rows.end
                 ? (__m512i)_mm512_cvtne2ps_pbh(_mm512_maskz_loadu_ps(high, from + narrow::lanes),
                                                _mm512_maskz_loadu_ps(low, from))
                 : _mm512_setzero_si512();
    }
  }

  // v[g]: of 16 columns from columns.begin on, their elements l + 2 g and l + 2 g + 1.
  STEPLADDER_DOT_INLINE void load_across_k(const float* values, std::int64_t row, Range columns,
                                           std::int64_t l, Vectors& v) const {
    const __mmask16 mask = narrow::first_lanes(columns.end - columns.begin);
    for (std::int64_t g = 0; g < narrow::tile_side; ++g) {
      const std::int64_t left = p_.k - l - 2 * g;
      const float* from = values + (l + 2 * g) * row + columns.begin;
      const __m512 low = _mm512_maskz_loadu_ps(left > 0 ? mask : __mmask16{0}, from),
                   high = _mm512_maskz_loadu_ps(left > 1 ? mask : __mmask16{0}, from + row);
      v[g] = narrow::bf16_pairs(low, high);
    }
  }

  Problem p_;
};

// Throws NotHere on a CPU without AVX512_BF16.
template <class Kernel>
std::unique_ptr<Plan> rounded_product(const Problem& problem, int threads) {
  require_here(Extension::avx512_bf16);
  return std::make_unique<NarrowProduct<narrow::DotBf16, Kernel, RoundedOperands>>(problem,
                                                                                   threads);
}

}  // namespace stepladder::matmul

// The product of operands that are quantized to int8, for prepacked_int8 and prepacked_int8_amx:
// prepare() quantizes and packs the weights, a step for each column of B; run() quantizes A as it
// packs it, a step for each row. C and the operands in memory stay fp32.
#pragma once

#include <vector>

#include "kernels/common/cpu/narrow/quantize.hpp"
#include "kernels/matmul/cpu/packed/narrow_product.hpp"

namespace stepladder::matmul {

// As a source of the packed product (kernels/common/cpu/narrow/packed_product.hpp).
template <class Kernel>
class QuantizedOperands {
 public:
  using Operands = matmul::Operands;

  explicit QuantizedOperands(const Problem& problem)
      : p_(problem),
        rows_(static_cast<std::size_t>(p_.m)),
        column_steps_(padded_columns()),
        column_offsets_(padded_columns()) {}

  std::int64_t m() const { return p_.m; }
  std::int64_t n() const { return p_.n; }
  std::int64_t k() const { return p_.k; }
  std::int64_t steps() const { return ceil_div(p_.k, narrow::vector_bytes); }
  double flops() const { return matmul::flops(p_); }
  float* c(const Operands& o) const { return o.c; }
  narrow::Quantization quantization() const {
    return {rows_.data(), column_steps_.data(), column_offsets_.data()};
  }

  void find_row_steps(const Operands& o, int threads) {
    const bool pays = p_.m * p_.k > narrow::elements_of_a_fork;
#pragma omp parallel for num_threads(threads) if (pays) schedule(static)
    for (std::int64_t i = 0; i < p_.m; ++i)
      rows_[static_cast<std::size_t>(i)] =
          narrow::step_of(narrow::largest_magnitude(o.a + i * p_.k, p_.k));
  }

  void find_column_steps(const Operands& o, int threads) {
#pragma omp parallel for num_threads(threads) schedule(static)
    for (std::int64_t j = 0; j < p_.n; j += narrow::lanes) find_steps_of_columns(o.b, j);
  }

  // 64 elements of 16 rows, rounded; 0 where rows or k end.
  STEPLADDER_DOT_TARGET void pack_a(const Operands& o, Range tiles, std::byte* to) const {
    for (std::int64_t t = tiles.begin; t < tiles.end; ++t)
      for (std::int64_t s = 0; s < steps(); ++s, to += narrow::tile_bytes)
        for (std::int64_t i = 0; i < narrow::tile_side; ++i) {
          const std::int64_t row = t * narrow::tile_side + i, l = s * narrow::vector_bytes;
          if (row < p_.m)
            pack_row(o.a + row * p_.k + l, p_.k - l, rows_[static_cast<std::size_t>(row)].inverse,
                     to + i * narrow::vector_bytes);
          else
            _mm512_store_si512(to + i * narrow::vector_bytes, _mm512_setzero_si512());
        }
  }

  STEPLADDER_DOT_TARGET void pack_b(const Operands& o, Range columns, std::byte* to) const {
    for (std::int64_t j = columns.begin; j < columns.end; j += narrow::tile_side)
      for (std::int64_t group = 0; group < steps() * narrow::tile_side;
           ++group, to += narrow::vector_bytes) {
        __m512i four[4];
        for (std::int64_t i = 0; i < 4; ++i) four[i] = weights(o.b, 4 * group + i, j);
        _mm512_store_si512(to, narrow::quads(four));
      }
  }

 private:
  // Whole panels of the kernel.
  std::size_t padded_columns() const {
    constexpr std::int64_t panel = Kernel::column_tiles * narrow::tile_side;
    return static_cast<std::size_t>(ceil_div(p_.n, panel) * panel);
  }

  // B[l, j … j + 15] as floats; 0 where B ends.
  STEPLADDER_DOT_INLINE __m512 load_weights(const float* b, std::int64_t l, std::int64_t j) const {
    return _mm512_maskz_loadu_ps(l < p_.k ? narrow::first_lanes(p_.n - j) : __mmask16{0},
                                 b + l * p_.n + j);
  }

  // Quantized; a step is a power of two or NaN.
  STEPLADDER_DOT_INLINE __m512i weights(const float* b, std::int64_t l, std::int64_t j) const {
    const __m512 steps = _mm512_loadu_ps(&column_steps_[static_cast<std::size_t>(j)]);
    return narrow::quantized(load_weights(b, l, j), _mm512_div_ps(_mm512_set1_ps(1.0F), steps));
  }

  // The steps and offsets of 16 columns.
  STEPLADDER_DOT_TARGET void find_steps_of_columns(const float* b, std::int64_t j) {
    __m512i largest = _mm512_setzero_si512(), sums = _mm512_setzero_si512();
    for (std::int64_t l = 0; l < p_.k; ++l)
      largest = narrow::larger(largest, load_weights(b, l, j));
    alignas(64) std::uint32_t each[narrow::lanes];
    _mm512_store_si512(each, largest);
    const auto first = static_cast<std::size_t>(j);
    for (std::size_t i = 0; i < narrow::lanes; ++i)
      column_steps_[first + i] = narrow::step_of(each[i]).size;
    for (std::int64_t l = 0; l < p_.k; ++l) sums = _mm512_add_epi32(sums, weights(b, l, j));
    _mm512_storeu_si512(&column_offsets_[first],
                        _mm512_mullo_epi32(sums, _mm512_set1_epi32(-narrow::quantized_zero)));
  }

  // The first `count` of 64 elements with 128 added; what lies behind is multiplied by weights of
  // 0.
  STEPLADDER_DOT_INLINE static void pack_row(const float* from, std::int64_t count, float inverse,
                                             std::byte* to) {
    const __m512 factor = _mm512_set1_ps(inverse);
    for (std::int64_t i = 0; i < 4; ++i, from += narrow::lanes, to += narrow::lanes) {
      const __m512i of = narrow::quantized(
          _mm512_maskz_loadu_ps(narrow::first_lanes(count - i * narrow::lanes), from), factor);
      _mm_store_si128(reinterpret_cast<__m128i*>(to),
                      _mm_xor_si128(_mm512_cvtepi32_epi8(of), _mm_set1_epi8(-128)));
    }
  }

  Problem p_;
  std::vector<narrow::Step> rows_;
  std::vector<float> column_steps_;
  std::vector<std::int32_t> column_offsets_;
};

// Throws Unsupported, or NotHere on a CPU without AVX512_VNNI.
template <class Kernel>
std::unique_ptr<Plan> quantized_product(const Problem& p, int threads) {
  narrow::require_quantized(!p.transpose_a && !p.transpose_b, p.k);
  return std::make_unique<
      NarrowProduct<narrow::DotQuantized, Kernel, QuantizedOperands<Kernel>, true>>(p, threads);
}

}  // namespace stepladder::matmul

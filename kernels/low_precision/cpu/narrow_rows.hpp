// The operands of this primitive as a source of the packed product
// (kernels/common/cpu/narrow/packed_product.hpp). Rows of both run along k. fp16 is widened to
// floats, which the kernel multiplies.
#pragma once

#include "kernels/common/cpu/narrow/dot_kernel.hpp"
#include "kernels/low_precision/cpu/in_place.hpp"

namespace stepladder::low_precision {

template <class Dot>
class NarrowRows {
 public:
  using Operands = low_precision::Operands;

  explicit NarrowRows(const Problem& problem) : p_(problem) {}

  std::int64_t m() const { return p_.m; }
  std::int64_t n() const { return p_.n; }
  std::int64_t k() const { return p_.k; }
  std::int64_t steps() const { return ceil_div(row_bytes(p_), loaded_bytes<Dot>); }
  double flops() const { return low_precision::flops(p_); }
  float* c(const Operands& o) const { return o.c; }

  STEPLADDER_DOT_TARGET void pack_a(const Operands& o, Range tiles, std::byte* to) const {
    for (std::int64_t t = tiles.begin; t < tiles.end; ++t)
      for (std::int64_t s = 0; s < steps(); ++s, to += tile_bytes) {
        __m512i v[tile_side];
        load_rows(o.a, {t * tile_side, p_.m}, s, v);
        store_tile(v, to);
      }
  }

  STEPLADDER_DOT_TARGET void pack_b(const Operands& o, Range columns, std::byte* to) const {
    for (std::int64_t j = columns.begin; j < columns.end; j += tile_side)
      for (std::int64_t s = 0; s < steps(); ++s, to += tile_bytes) {
        __m512i v[tile_side];
        load_rows(o.b, {j, columns.end}, s, v);
        transpose_groups(v);
        store_tile(v, to);
      }
  }

 private:
  // The part of 16 rows that step s of k reads; zeros for rows that are missing.
  STEPLADDER_DOT_INLINE void load_rows(const void* values, Range rows, std::int64_t s,
                                       __m512i (&v)[tile_side]) const {
    const std::int64_t bytes = row_bytes(p_), at = s * loaded_bytes<Dot>;
    const std::byte* from = static_cast<const std::byte*>(values) + rows.begin * bytes + at;
    for (std::int64_t i = 0; i < tile_side; ++i)
      v[i] = rows.begin + i < rows.end ? load<Dot>(from + i * bytes, bytes - at)
                                       : _mm512_setzero_si512();
  }

  Problem p_;
};

// A plan for the format of the problem; throws Unsupported as require_dot_products().
template <bool prepacks = false>
std::unique_ptr<Plan> packed_plan(const Problem& problem, const Resources& resources) {
  require_dot_products(problem.format);
  std::unique_ptr<Plan> plan;
  for_dot(problem.format, [&]<class Dot>() {
    plan = std::make_unique<PackedProduct<Dot, DotKernel, NarrowRows<Dot>, prepacks>>(
        NarrowRows<Dot>(problem), resources.threads);
  });
  return plan;
}

}  // namespace stepladder::low_precision

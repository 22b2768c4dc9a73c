// The product C = A B of packed narrow operands. Both consist of tiles of 1 KiB, in consecutive
// cache lines:
//
//   tile of A   16 rows x 64 bytes of each, as they follow along k
//   tile of B   16 groups of 4 bytes x 16 columns: a vector is one group of 16 columns
//
// A tile of A and one of B are a step of k for 16 x 16 elements of C. What lies behind the rows and
// behind k is 0. A panel of B is as wide as the kernel. A block of panels is packed, and rows of A
// pass by, so that rows of C are written in memory order; as many rows as the kernel multiplies at
// once are packed just before, for each block anew. Few rows that several panels read are all
// packed first, and a block is one panel. A long k is divided into blocks, between which the sums
// of the packed rows are kept; all of these rows meet a block of B before the next. Threads divide
// columns or rows of C, and pack for themselves: what another core has packed takes longer to
// arrive than packing it again.
//
// A kernel multiplies up to row_tiles x column_tiles tiles and has
//   multiply(Part)       the sums of Part's steps, stored to C or kept
//   blocks_of_k(steps)   into how many k is divided
//   bytes_of_block       of panels of B; a larger block packs A less often
// A source has Operands, the sizes m, n, k and steps, flops(), and
//   pack_a(operands, tiles, to)     rows of tiles of A: [tiles][steps]
//   pack_b(operands, columns, to)   a panel of B: [tiles][steps]
//   c(operands)                     C, [m, n]
// With DotQuantized also
//   find_column_steps(operands, threads)   before columns are packed
//   find_row_steps(operands, threads)      before rows are
//   quantization()                         a Quantization
#pragma once

#include <algorithm>
#include <type_traits>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/narrow/quantize.hpp"
#include "kernels/common/cpu/parts.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/common/variant.hpp"

namespace stepladder::narrow {

inline constexpr std::int64_t tile_side = 16, tile_bytes = tile_side * vector_bytes;

// v[i] is row i of 16 groups; afterwards it is group i of all rows.
STEPLADDER_DOT_INLINE void transpose_groups(__m512i (&v)[tile_side]) {
  __m512i w[tile_side];
  for (int i = 0; i < tile_side; i += 2) {
    w[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
    w[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
  }
  for (int i = 0; i < tile_side; i += 4) {
    v[i] = _mm512_unpacklo_epi64(w[i], w[i + 2]);
    v[i + 1] = _mm512_unpackhi_epi64(w[i], w[i + 2]);
    v[i + 2] = _mm512_unpacklo_epi64(w[i + 1], w[i + 3]);
    v[i + 3] = _mm512_unpackhi_epi64(w[i + 1], w[i + 3]);
  }
  // v[4 q + r] has the groups r, r + 4, r + 8 and r + 12 of the rows 4 q to 4 q + 3.
  for (int r = 0; r < 4; ++r) {
    const __m512i low = _mm512_shuffle_i32x4(v[r], v[r + 4], 0x88),
                  low_odd = _mm512_shuffle_i32x4(v[r], v[r + 4], 0xdd),
                  high = _mm512_shuffle_i32x4(v[r + 8], v[r + 12], 0x88),
                  high_odd = _mm512_shuffle_i32x4(v[r + 8], v[r + 12], 0xdd);
    w[r] = _mm512_shuffle_i32x4(low, high, 0x88);
    w[r + 4] = _mm512_shuffle_i32x4(low_odd, high_odd, 0x88);
    w[r + 8] = _mm512_shuffle_i32x4(low, high, 0xdd);
    w[r + 12] = _mm512_shuffle_i32x4(low_odd, high_odd, 0xdd);
  }
  for (int i = 0; i < tile_side; ++i) v[i] = w[i];
}

STEPLADDER_DOT_INLINE void store_tile(const __m512i (&v)[tile_side], std::byte* to) {
  for (int i = 0; i < tile_side; ++i) _mm512_store_si512(to + i * vector_bytes, v[i]);
}

// Of quantized operands. Columns are whole panels.
struct Quantization {
  const Step* rows;                    // [m]
  const float* column_steps;           // [columns]
  const std::int32_t* column_offsets;  // [columns]
};

// What a kernel computes at once.
struct Part {
  const std::byte *a, *b;        // first tiles of the steps
  std::int64_t a_row, b_column;  // bytes from a row, or a column, of tiles to the next
  std::int64_t steps;
  std::int64_t rows, columns;  // of C
  float* c;
  std::int64_t ldc, k;
  bool is_first, is_last;       // steps of k
  std::byte* sums;              // [row_tiles][column_tiles] tiles, kept from the first to the last
  Quantization quantization{};  // of its rows and columns
};

template <class Dot>
STEPLADDER_DOT_INLINE typename Dot::Sums first_sums(const Part& part, std::int64_t column) {
  if constexpr (std::is_same_v<Dot, DotQuantized>)
    return _mm512_loadu_si512(part.quantization.column_offsets + column);
  else
    return Dot::zero();
}

template <class Dot>
STEPLADDER_DOT_INLINE __m512 results_of(typename Dot::Sums sums, const Part& part, std::int64_t row,
                                        std::int64_t column) {
  if constexpr (std::is_same_v<Dot, DotQuantized>)
    return _mm512_mul_ps(
        _mm512_mul_ps(_mm512_cvtepi32_ps(sums), _mm512_set1_ps(part.quantization.rows[row].size)),
        _mm512_loadu_ps(part.quantization.column_steps + column));
  else
    return results_of(sums, part.k, Dot{});
}

// prepacks: prepare() packs B, for weights that do not change.
template <class Dot, class Kernel, class Source, bool prepacks = false>
class PackedProduct final : public Plan<typename Source::Operands> {
 public:
  using Operands = typename Source::Operands;

  PackedProduct(const Source& source, int threads)
      : source_(source),
        steps_(source.steps()),
        row_tiles_(ceil_div(source.m(), tile_side)),
        threads_(threads_that_pay(source.flops(), threads)),
        parts_(divides_columns() ? threads_ : 1),
        panels_(ceil_div(ceil_div(column_tiles(), parts_), Kernel::column_tiles)),
        has_few_rows_(panels_ > 1 && row_tiles_ <= 4 * rows_at_once),
        block_panels_(panels_of_block()),
        a_(tiles(threads_ * rows_kept() * steps_)),
        b_(tiles((prepacks ? parts_ * panels_ : threads_ * block_panels_) * tiles_of_panel())),
        sums_(tiles(Kernel::blocks_of_k(steps_) > 1 ? threads_ * tiles_of_sums() : 0)) {}

  void prepare(const Operands& o) override {
    if constexpr (prepacks) {
      if constexpr (is_quantized) source_.find_column_steps(o, threads_);
#pragma omp parallel for num_threads(threads_) schedule(static)
      for (std::int64_t i = 0; i < parts_ * panels_; ++i) {
        const Range columns = columns_of(i / panels_);
        pack_b(o, columns, columns.begin + i % panels_ * panel_columns, panel_of(i));
      }
    }
  }

  void run(const Operands& o) override {
    if constexpr (is_quantized) source_.find_row_steps(o, threads_);
    const Range all_rows{0, row_tiles_};
    if (threads_ == 1) return multiply(o, all_rows, 0, 0);
#pragma omp parallel for num_threads(threads_) schedule(static, 1)
    for (int thread = 0; thread < threads_; ++thread)
      if (parts_ > 1)
        multiply(o, all_rows, thread, thread);
      else
        multiply(o, partition(row_tiles_, threads_, thread, rows_at_once), 0, thread);
  }

 private:
  static constexpr bool is_quantized = std::is_same_v<Dot, DotQuantized>;
  static_assert(prepacks || !is_quantized);
  static constexpr std::int64_t rows_at_once = Kernel::row_tiles,
                                panel_columns = Kernel::column_tiles * tile_side;

  // Threads divide the columns of C or its rows: what makes the largest part smaller. Each packs
  // all of the other operand, which costs about as much as 16 more rows, or columns; so does a B
  // that was packed ahead and does not fit L2.
  bool divides_columns() const {
    constexpr std::int64_t l2_bytes = 1 << 20;
    const bool b_is_near = prepacks && column_tiles() * steps_ * tile_bytes <= l2_bytes;
    constexpr std::int64_t packing = 16;
    const std::int64_t rows = ceil_div(row_tiles_, threads_) * tile_side,
                       columns = ceil_div(column_tiles(), threads_) * tile_side;
    return (columns + packing) * source_.m() <= (rows + (b_is_near ? 0 : packing)) * source_.n();
  }
  std::int64_t column_tiles() const { return ceil_div(source_.n(), tile_side); }
  Range columns_of(std::int64_t part) const {
    return partition(source_.n(), parts_, part, tile_side);
  }

  std::int64_t rows_kept() const { return has_few_rows_ ? row_tiles_ : rows_at_once; }
  std::int64_t panels_of_block() const {
    return has_few_rows_ ? 1
                         : std::clamp(Kernel::bytes_of_block / (tiles_of_panel() * tile_bytes),
                                      std::int64_t{1}, panels_);
  }

  // The panel of a part that begins at `first`; none behind its columns.
  void pack_b(const Operands& o, Range columns, std::int64_t first, std::byte* to) const {
    if (first < columns.end)
      source_.pack_b(o, {first, std::min(columns.end, first + panel_columns)}, to);
  }

  void multiply(const Operands& o, Range rows, std::int64_t part, int thread) const {
    const Kernel kernel;
    const std::int64_t blocks_of_k = Kernel::blocks_of_k(steps_);
    std::byte* a = a_.get() + thread * rows_kept() * steps_ * tile_bytes;
    if (has_few_rows_) source_.pack_a(o, rows, a);
    const Range columns = columns_of(part);
    for (std::int64_t panel = 0; columns.begin + panel * panel_columns < columns.end;
         panel += block_panels_) {
      const std::int64_t first = columns.begin + panel * panel_columns;
      const Range block{first, std::min(columns.end, first + block_panels_ * panel_columns)};
      std::byte* b = panel_of(prepacks ? part * panels_ + panel : thread * block_panels_);
      if (!prepacks)
        for (std::int64_t i = 0; i < block_panels_; ++i)
          pack_b(o, block, first + i * panel_columns, b + i * tiles_of_panel() * tile_bytes);
      // Of the rows packed at a.
      std::byte* sums = sums_.get() + thread * tiles_of_sums() * tile_bytes;
      for (std::int64_t begin = rows.begin; begin < rows.end; begin += rows_kept()) {
        const Range kept{begin, std::min(rows.end, begin + rows_kept())};
        if (!has_few_rows_) source_.pack_a(o, kept, a);
        for (std::int64_t i = 0; i < blocks_of_k; ++i)
          for (std::int64_t t = kept.begin; t < kept.end; t += rows_at_once)
            multiply_row(o, kernel, {t, std::min(kept.end, t + rows_at_once)}, block,
                         partition(steps_, blocks_of_k, i), a + (t - begin) * steps_ * tile_bytes,
                         b, sums + (t - begin) * Kernel::column_tiles * block_panels_ * tile_bytes);
      }
    }
  }

  // The product of the rows, as many tiles as the kernel computes at once, packed at a, and the
  // columns of a block, packed at b.
  void multiply_row(const Operands& o, const Kernel& kernel, Range rows, Range columns, Range steps,
                    const std::byte* a, const std::byte* b, std::byte* sums) const {
    const std::int64_t row = rows.begin * tile_side;
    Part part{.a = a + steps.begin * tile_bytes,
              .b = b + steps.begin * tile_bytes,
              .a_row = steps_ * tile_bytes,
              .b_column = steps_ * tile_bytes,
              .steps = steps.end - steps.begin,
              .rows = std::min(rows.end * tile_side, source_.m()) - row,
              .columns = 0,
              .c = nullptr,
              .ldc = source_.n(),
              .k = source_.k(),
              .is_first = steps.begin == 0,
              .is_last = steps.end == steps_,
              .sums = sums};
    for (std::int64_t column = columns.begin; column < columns.end; column += panel_columns) {
      part.columns = std::min(panel_columns, columns.end - column);
      if constexpr (is_quantized) {
        const Quantization all = source_.quantization();
        part.quantization = {all.rows + row, all.column_steps + column,
                             all.column_offsets + column};
      }
      part.c = source_.c(o) + row * source_.n() + column;
      kernel.template multiply<Dot>(part);
      part.b += tiles_of_panel() * tile_bytes;
      part.sums += rows_at_once * Kernel::column_tiles * tile_bytes;
    }
  }

  static AlignedArray<std::byte> tiles(std::int64_t count) {
    return aligned_array<std::byte>(count * tile_bytes);
  }
  std::int64_t tiles_of_panel() const { return Kernel::column_tiles * steps_; }
  std::int64_t tiles_of_sums() const {
    return ceil_div(rows_kept(), rows_at_once) * rows_at_once * Kernel::column_tiles *
           block_panels_;
  }
  std::byte* panel_of(std::int64_t index) const {
    return b_.get() + index * tiles_of_panel() * tile_bytes;
  }

  Source source_;
  std::int64_t steps_, row_tiles_;
  int threads_;
  std::int64_t parts_;   // of the columns
  std::int64_t panels_;  // of the largest part
  bool has_few_rows_;
  std::int64_t block_panels_;
  AlignedArray<std::byte> a_;  // of each thread: [rows_kept()][steps] tiles
  // All panels, [parts][panels], or those of a block of each thread: [column tiles][steps]
  AlignedArray<std::byte> b_;
  // Of each thread: [row tiles / rows_at_once][panels of a block][rows_at_once][column tiles]
  AlignedArray<std::byte> sums_;
};

}  // namespace stepladder::narrow

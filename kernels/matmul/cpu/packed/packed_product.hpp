// The packed product of blocks, with its packing and its choice of the transposed product.
//
//   panel of B   [KC, NR]   packed: consecutive cache lines, which never conflict for a cache set
//   strip of A   [MR, KC]   read in place, one row per broadcast
//   tile of C    [MR, NR]   registers (kernels/common/cpu/gemm_tile.hpp)
//
// Few rows: one panel of B at a time is in L1, and all strips of A pass by. Many rows, or a large
// C: a block of several panels is in L2, and each strip passes along it, so that B is packed once
// and rows of C are written in memory order. The first strip packs while it computes, and the next
// ones prefetch the panel that follows; a single strip reads B in place, and so do all strips if B
// is as wide as a panel. A transposed B is packed before, by transposing squares in registers. A
// transposed A with many steps of k is packed too, 240 rows at a time: whole rows apart, they would
// conflict for the sets of L1. If that or unused lanes would cost more, the transposed product
// Cᵀ = op(B)ᵀ op(A)ᵀ is computed, and Cᵀ is transposed at the end.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/gemm_tile.hpp"
#include "kernels/common/cpu/partition.hpp"
#include "kernels/common/cpu/transpose.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/matmul/cpu/packed/bias_relu.hpp"
#include "kernels/matmul/cpu/packed/strips.hpp"
#include "kernels/matmul/matmul.hpp"

namespace stepladder::matmul::inline STEPLADDER_ISA {

// C is read and written once per KC steps of k. 240 rows of A are at most 480 KiB, half of an L2 of
// 1 MiB, and whole tiles of 8 and of 6.
inline constexpr std::int64_t max_kc = 512, max_mc = 240;

// fuses: the epilogue of the problem is applied to each tile after its last block of k.
template <bool fuses = false>
class PackedProduct {
 public:
  using Tile = GemmTile<>;

  // What the caller does apart from multiplying: it adds to C, or it packs B ahead.
  enum class Use { plain, adds, prepacks };

  // The transposed product is not considered where multiply() has to add to C.
  explicit PackedProduct(const Problem& problem, int threads = 1, Use use = Use::plain)
      : transposed_(use != Use::adds &&
                    cost(transposed(problem)) + transpose_cost(problem.m * problem.n) <
                        cost(problem) - (use == Use::prepacks ? pack_b_cost(problem) : 0)),
        problem_(transposed_ ? transposed(problem) : problem),
        b_is_panel_(is_panel(problem_)),
        kc_(equal_blocks(problem_.k, b_is_panel_ ? 2 * max_kc : max_kc)),
        nc_(panels_at_a_time(problem_, kc_) * Tile::columns),
        vectors_(vectors_of_tile(problem_)),
        strip_rows_(most_rows_of_strip(problem_)),
        prefetches_c_(is_mostly_c(problem_)),
        packs_a_(pays_to_pack_a(problem_)),
        b_panels_(panels_of_b(threads * panels_size())),
        a_strips_(
            aligned_array<float>(static_cast<std::size_t>(packs_a_ ? threads * strips_size() : 0))),
        c_transposed_(aligned_array<float>(
            transposed_ ? static_cast<std::size_t>(problem.m * problem.n) : 0)) {}

  // The product that is computed: the problem or its transpose.
  const Problem& computed() const { return problem_; }

  // Computes `rows` and `columns` of the C of computed(), or adds the product to them. `o` are the
  // operands of the problem. prepacked: what prepack() made of these columns, null: B is packed.
  void multiply(const Operands& o, Range rows, Range columns, int thread = 0, bool adds = false,
                float* prepacked = nullptr);

  // Packs whole columns of the problem's B. false where the product reads B in place, or computes
  // the transposed product, whose B is the problem's A.
  bool can_prepack() const { return !transposed_ && !b_is_panel_; }
  std::int64_t prepacked_size(Range columns) const {  // floats
    return ceil_div(columns.end - columns.begin, Tile::columns) * Tile::columns * problem_.k;
  }
  void prepack(const Operands& o, Range columns, float* to) const;

  // These three multiply in steps, for threads that divide K. The first sums over l in `k` into a
  // whole C of computed(), the second is the C that has all sums in the end, and the third
  // transposes it, if it needs that.
  void multiply_slice(const Operands& o, Range k, float* c, int thread,
                      float* prepacked = nullptr) const;
  float* c_of_computed(const Operands& o) const { return transposed_ ? c_transposed_.get() : o.c; }
  void finish(const Operands& o, Range rows, Range columns) const;

 private:
  // Cᵀ = op(B)ᵀ op(A)ᵀ
  static Problem transposed(const Problem& p) {
    return {.m = p.n,
            .n = p.m,
            .k = p.k,
            .transpose_a = !p.transpose_b,
            .transpose_b = !p.transpose_a,
            .epilogue = p.epilogue};
  }

  // Estimated cycles: the multiply-adds of whole vectors, and what access along columns costs.
  static double cost(const Problem& p) {
    const std::int64_t vectors = ceil_div(p.n, Tile::lanes);
    return static_cast<double>(p.m * vectors * p.k) +
           (p.transpose_a ? strided_cost(p.m * p.k) : 0) + pack_b_cost(p);
  }
  static double pack_b_cost(const Problem& p) {
    return p.transpose_b ? pack_cycles * static_cast<double>(p.n * p.k) : 0;
  }
  // A panel of B is transposed within L1 and L2: a quarter of a shuffle per element, plus loads and
  // stores. Cᵀ is larger than a cache sooner, and a step of k in a strided A may be a new page.
  static constexpr double pack_cycles = 0.4;
  static constexpr std::int64_t near_size = 1 << 14;  // floats: 64 KiB
  static double transpose_cost(std::int64_t size) {
    return (size <= near_size ? pack_cycles : 1.0) * static_cast<double>(size);
  }
  static double strided_cost(std::int64_t size) {
    return size <= near_size ? 0.0 : 0.5 * static_cast<double>(size);
  }

  // One panel where L1 can keep it for all strips, or as many as half of an L2 of 1 MiB takes.
  static std::int64_t panels_at_a_time(const Problem& p, std::int64_t kc) {
    constexpr std::int64_t block_of_b = 1 << 17, large_c = 1 << 18,
                           c_beyond_l1 = 1 << 13;  // floats
    const bool many_strips = p.m > max_mc || (p.k < p.m && p.m * p.n >= large_c) ||
                             (has_few_steps(p.k, p.n) && p.m * p.n >= c_beyond_l1);
    if (!many_strips) return 1;
    return std::clamp<std::int64_t>(block_of_b / (kc * Tile::columns), 1,
                                    ceil_div(p.n, Tile::columns));
  }

  // The size of nearly equal blocks that cover `size`, each at most `max`.
  static std::int64_t equal_blocks(std::int64_t size, std::int64_t max) {
    return ceil_div(size, ceil_div(size, max));
  }

  // A block of K, and whether its product is added to C.
  struct Block {
    std::int64_t begin, end;
    bool adds;
    std::int64_t size() const { return end - begin; }
  };

  enum class Source { panel, packed_now, in_place };  // of a tile's columns of B

  // Floats of a thread.
  std::int64_t panels_size() const { return b_is_panel_ ? 0 : kc_ * nc_; }
  std::int64_t strips_size() const { return kc_ * max_mc; }

  struct Workspace {
    float *panels, *strips;
    float* prepacked;           // panels of all columns from first_column on, [k, NR] each, or null
    std::int64_t first_column;  // of the columns of multiply()
  };

  Operands operands_of_computed(const Operands& o, float* c) const {
    return {transposed_ ? o.b : o.a, transposed_ ? o.a : o.b, c, o.bias};
  }

  // `o` are the operands of computed().
  void multiply_part(const Operands& o, Range rows, Range columns, Range k, int thread, bool adds,
                     float* prepacked) const;

  // The tiles of a block of C, strip of rows by strip of rows. is_first: of the blocks of columns.
  template <class AnyTile>
  void multiply_strips(const Operands& o, Range rows, Range columns, Block block,
                       const Workspace& work, bool is_first) const {
    const Strips strips = strips_of<AnyTile>(rows);
    for (std::int64_t s = 0; s < strips.count; ++s) {
      const Range tile_rows = strips.rows_of(s);
      const Source source = s > 0 || b_is_panel_ || work.prepacked       ? Source::panel
                            : strips.count == 1 && !problem_.transpose_b ? Source::in_place
                                                                         : Source::packed_now;
      const Strip a = strip_of<AnyTile>(o.a, strips, s, block, work, is_first);
      std::int64_t j = columns.begin;
      if constexpr (!fuses && std::is_same_v<AnyTile, Tile>)
        if (source == Source::panel && has_few_steps(problem_.k, columns.end - columns.begin))
          j += multiply_panels(o, a, tile_rows, columns, block,
                               panel_of<AnyTile>(work, columns, block, j));
      for (; j < columns.end; j += AnyTile::columns)
        multiply_tile<AnyTile>(o, a, tile_rows, {j, std::min(columns.end, j + AnyTile::columns)},
                               block, source, panel_of<AnyTile>(work, columns, block, j));
    }
  }

  template <class AnyTile>
  Strips strips_of(Range rows) const {
    return {rows, ceil_div(rows.end - rows.begin, std::min(AnyTile::rows, strip_rows_))};
  }

  // Strip s of a, in place or packed with others.
  template <class AnyTile>
  Strip strip_of(const float* a, const Strips& strips, std::int64_t s, Block block,
                 const Workspace& work, bool is_first) const {
    if (!packs_a_) return strip_in_place(a, strips.rows_of(s).begin, block);
    const std::int64_t strips_of_block = std::min(strips.count, max_mc / AnyTile::rows);
    const std::int64_t in_block = s % strips_of_block;
    const Range packed{s, std::min(strips.count, s + strips_of_block)};
    if (in_block == 0 && (is_first || strips.count > strips_of_block))
      pack_strips<AnyTile::rows>(a + block.begin * problem_.m, problem_.m, block.size(), strips,
                                 packed, work.strips);
    return {work.strips + in_block * block.size() * AnyTile::rows, 1, AnyTile::rows};
  }

  // While the strips pass by one panel of B, some prefetch the next one to L2: in each step of k a
  // cache line, so that it comes from L3 or memory in the time of several strips. The time of the
  // strip that packs it is too short.
  static constexpr std::int64_t prefetching_strips = ceil_div(Tile::columns, line_floats);
  static constexpr std::int64_t prefetched_columns = Tile::columns / prefetching_strips;

  // Where strips pass by one panel at a time, enough of them. Columns of B are not prefetched, nor
  // rows that are packed where one strip would prefetch the whole panel, or where they are pages
  // apart: that loses.
  bool prefetches_b(Range rows, bool is_prepacked) const {
    constexpr std::int64_t longest_row = 2048;  // floats
    return vectors_ == Tile::vectors && nc_ == Tile::columns && !b_is_panel_ && !prefetches_c_ &&
           (is_prepacked ||
            (!problem_.transpose_b && prefetching_strips > 1 && problem_.n <= longest_row)) &&
           strips_of<Tile>(rows).count >= prefetching_strips + (is_prepacked ? 0 : 1);
  }

  // The tiles of one panel. is_near: the panel before has prefetched it. next: the panel that
  // follows, or null.
  void multiply_panel(const Operands& o, Range rows, Range columns, Block block,
                      const Workspace& work, bool is_first, bool is_near, const float* next) const {
    const std::int64_t n = problem_.n, k = block.size(), width = columns.end - columns.begin;
    const std::int64_t packing_strips = work.prepacked ? 0 : 1;
    const std::int64_t line_step = work.prepacked ? prefetched_columns : n,
                       strip_step = prefetched_columns * (work.prepacked ? k : 1);
    // Where rows begin within a cache line, the panel before has fetched the first one.
    constexpr std::int64_t last = prefetched_columns - 1;
    const float* b = o.b + block.begin * n + columns.begin;
    float* panel = panel_of<Tile>(work, columns, block, columns.begin);
    const Strips strips = strips_of<Tile>(rows);
    for (std::int64_t s = 0; s < strips.count; ++s) {
      const Range tile_rows = strips.rows_of(s);
      const Strip a = strip_of<Tile>(o.a, strips, s, block, work, is_first);
      const auto epilogue = epilogue_of(o, tile_rows, columns, block);
      const std::int64_t height = tile_rows.end - tile_rows.begin, i = s - packing_strips;
      float* c = o.c + tile_rows.begin * n + columns.begin;
      if (i < 0 && is_near)
        Tile::multiply_packing<false>(k, a.a, a.row, a.step, b, n, panel, c, n, height, width,
                                      block.adds, epilogue);
      else if (i < 0)
        Tile::multiply_packing(k, a.a, a.row, a.step, b, n, panel, c, n, height, width, block.adds,
                               epilogue);
      else if (next != nullptr && i < prefetching_strips)
        Tile::multiply_prefetching(k, a.a, a.row, a.step, panel, next + last + i * strip_step,
                                   line_step, c, n, height, width, block.adds, epilogue);
      else
        Tile::multiply_strided(k, a.a, a.row, a.step, panel, Tile::columns, c, n, height, width,
                               block.adds, epilogue);
    }
  }

  // The panel of a tile whose columns begin at j, from the first step of the block on.
  template <class AnyTile>
  float* panel_of(const Workspace& work, Range columns, Block block, std::int64_t j) const {
    return work.prepacked ? work.prepacked + (j - work.first_column) * problem_.k +
                                block.begin * AnyTile::columns
                          : work.panels + (j - columns.begin) * block.size();
  }

  Strip strip_in_place(const float* a, std::int64_t row, Block block) const {
    const Problem& p = problem_;
    return p.transpose_a ? Strip{a + block.begin * p.m + row, 1, p.m}
                         : Strip{a + row * p.k + block.begin, p.k, 1};
  }

  // Few steps of k stay in L1 between the panels, unless they are a multiple of 512 bytes apart and
  // share few of its sets; a wide C repays the copy. A C of few columns has too few panels.
  static bool pays_to_pack_a(const Problem& p) {
    constexpr std::int64_t many_steps = 128, some_steps = 64, few_sets = 128, wide = 480;  // floats
    const bool pays_with_some = p.m % few_sets == 0 || p.n >= wide;
    return p.transpose_a && p.k >= (pays_with_some ? some_steps : many_steps) &&
           p.m > 2 * Tile::rows && p.n >= 2 * Tile::columns;
  }

  // The whole panels of a strip. Returns their columns.
  std::int64_t multiply_panels(const Operands& o, const Strip& a, Range rows, Range columns,
                               Block block, const float* panels) const {
    const std::int64_t count = (columns.end - columns.begin) / Tile::columns, n = problem_.n;
    Tile::multiply_panels(block.size(), a.a, a.row, a.step, panels, count,
                          o.c + rows.begin * n + columns.begin, n, rows.end - rows.begin,
                          block.adds);
    return count * Tile::columns;
  }

  // A wide C with few steps of k: writing C takes longer than the arithmetic.
  static bool has_few_steps(std::int64_t k, std::int64_t columns) {
    return k <= few_steps && columns >= 4 * Tile::columns;
  }
  static constexpr std::int64_t few_steps = 16;

  // Fetches a tile of C for writing, while the tile is computed.
  void prefetch_tile(const float* c, std::int64_t height, std::int64_t width) const {
    constexpr std::int64_t line = 16;
    for (std::int64_t i = 0; i < height; ++i)
      for (std::int64_t j = 0; j < width; j += line)
        __builtin_prefetch(c + i * problem_.n + j, 1, 3);
  }

  // A C of one or two vectors per row has taller tiles, with 24 accumulators on AVX-512.
  using OneVector = GemmTile<Tile::rows * Tile::vectors, 1>;
  using TwoVectors = GemmTile<Tile::rows * Tile::vectors / 2, 2>;
  static std::int64_t vectors_of_tile(const Problem& p) {
    return std::min(Tile::vectors, ceil_div(p.n, Tile::lanes));
  }

  // Rows of A a multiple of 1 KiB apart share few sets of L1: as many fit as a set has ways.
  static std::int64_t most_rows_of_strip(const Problem& p) {
    constexpr std::int64_t kib = 256, usual_ways = 8;            // kib: floats
    const std::int64_t ways = sysconf(_SC_LEVEL1_DCACHE_ASSOC);  // 0 or -1: unknown
    return !p.transpose_a && p.k % kib == 0 ? ways > 0 ? ways : usual_ways : OneVector::rows;
  }

  // Whole rows of B that are as long as those of a panel need not be packed. Then blocks of K may
  // be longer: what matters is C, and the time until a tile is at full speed.
  static bool is_panel(const Problem& p) {
    return !p.transpose_b && p.n == vectors_of_tile(p) * Tile::lanes;
  }

  // The last block of K applies the epilogue.
  auto epilogue_of([[maybe_unused]] const Operands& o, [[maybe_unused]] Range rows,
                   [[maybe_unused]] Range columns, [[maybe_unused]] Block block) const {
    if constexpr (!fuses) {
      return IdentityEpilogue{};
    } else {
      BiasRelu epilogue;
      if (block.end == problem_.k) {
        (transposed_ ? epilogue.row_bias : epilogue.column_bias) =
            o.bias + (transposed_ ? rows : columns).begin;
        if (problem_.epilogue == Epilogue::bias_relu) epilogue.lowest = 0.0F;
      }
      return epilogue;
    }
  }

  template <class AnyTile>
  void multiply_tile(const Operands& o, const Strip& a, Range rows, Range columns, Block block,
                     Source source, float* b_panel) const {
    const Problem& p = problem_;
    const auto epilogue = epilogue_of(o, rows, columns, block);
    const std::int64_t height = rows.end - rows.begin, width = columns.end - columns.begin;
    float* c = o.c + rows.begin * p.n + columns.begin;
    const float* b = p.transpose_b ? o.b + columns.begin * p.k + block.begin
                                   : o.b + block.begin * p.n + columns.begin;
    if (prefetches_c_) prefetch_tile(c, height, width);
    if (source == Source::in_place)
      return AnyTile::multiply_in_place(block.size(), a.a, a.row, a.step, b, p.n, c, p.n, height,
                                        width, block.adds, epilogue);
    if (source == Source::packed_now && !p.transpose_b)
      return AnyTile::multiply_packing(block.size(), a.a, a.row, a.step, b, p.n, b_panel, c, p.n,
                                       height, width, block.adds, epilogue);
    if (source == Source::packed_now)
      transpose(b, p.k, b_panel, AnyTile::columns, width, block.size());
    AnyTile::multiply_strided(block.size(), a.a, a.row, a.step, b_is_panel_ ? b : b_panel,
                              AnyTile::columns, c, p.n, height, width, block.adds, epilogue);
  }

  // A tile with few steps of k would wait for the cache lines of C.
  static bool is_mostly_c(const Problem& p) { return p.k <= 16 && p.m * p.n >= 1 << 16; }

  bool transposed_;
  Problem problem_;  // computed()
  bool b_is_panel_;
  std::int64_t kc_, nc_;  // nc_: a multiple of NR
  std::int64_t vectors_, strip_rows_;
  bool prefetches_c_;
  bool packs_a_;
  AlignedArray<float> b_panels_;      // [threads, NC / NR, KC, NR]
  AlignedArray<float> a_strips_;      // [threads, max_mc / MR, KC, MR] if packs_a_
  AlignedArray<float> c_transposed_;  // [computed m, computed n] if transposed
};

// Not inline: the tiles of all sizes are compiled once for each ISA, and not in each rung.
template <bool fuses>
void PackedProduct<fuses>::multiply_part(const Operands& o, Range rows, Range columns, Range k,
                                         int thread, bool adds, float* prepacked) const {
  const Workspace work{b_panels_.get() + thread * panels_size(),
                       a_strips_.get() + thread * (packs_a_ ? strips_size() : 0), prepacked,
                       columns.begin};
  const bool prefetches = prefetches_b(rows, prepacked != nullptr);
  for (std::int64_t l = k.begin; l < k.end; l += kc_) {
    const Block block{l, std::min(k.end, l + kc_), adds || l > k.begin};
    for (std::int64_t j = columns.begin; j < columns.end; j += nc_) {
      const Range part{j, std::min(columns.end, j + nc_)};
      const bool is_first = j == columns.begin;
      if (prefetches) {
        const bool is_last = part.end == columns.end;
        const std::int64_t next_l = is_last ? block.end : l,
                           next_j = is_last ? columns.begin : part.end;
        const float* next = next_l == k.end ? nullptr
                            : prepacked
                                ? panel_of<Tile>(work, columns, {next_l, k.end, true}, next_j)
                                : o.b + next_l * problem_.n + next_j;
        multiply_panel(o, rows, part, block, work, is_first, l > k.begin || !is_first, next);
        continue;
      }
      if (vectors_ == 1) {
        multiply_strips<OneVector>(o, rows, part, block, work, is_first);
        continue;
      }
      if constexpr (Tile::vectors > 2)  // TwoVectors is Tile with 16 registers
        if (vectors_ == 2) {
          multiply_strips<TwoVectors>(o, rows, part, block, work, is_first);
          continue;
        }
      multiply_strips<Tile>(o, rows, part, block, work, is_first);
    }
  }
}

template <bool fuses>
void PackedProduct<fuses>::multiply(const Operands& o, Range rows, Range columns, int thread,
                                    bool adds, float* prepacked) {
  multiply_part(operands_of_computed(o, c_of_computed(o)), rows, columns, {0, problem_.k}, thread,
                adds, prepacked);
  finish(o, rows, columns);
}

template <bool fuses>
void PackedProduct<fuses>::multiply_slice(const Operands& o, Range k, float* c, int thread,
                                          float* prepacked) const {
  multiply_part(operands_of_computed(o, c), {0, problem_.m}, {0, problem_.n}, k, thread, false,
                prepacked);
}

template <bool fuses>
void PackedProduct<fuses>::prepack(const Operands& o, Range columns, float* to) const {
  const Problem& p = problem_;
  const std::int64_t width = (vectors_ == 1   ? OneVector::columns
                              : vectors_ == 2 ? TwoVectors::columns
                                              : Tile::columns);
  for (std::int64_t j = columns.begin; j < columns.end; j += width, to += width * p.k) {
    const std::int64_t count = std::min(width, columns.end - j);
    if (p.transpose_b)
      transpose(o.b + j * p.k, p.k, to, width, count, p.k);
    else
      for (std::int64_t l = 0; l < p.k; ++l) std::copy_n(o.b + l * p.n + j, count, to + l * width);
  }
}

template <bool fuses>
void PackedProduct<fuses>::finish(const Operands& o, Range rows, Range columns) const {
  const Problem& p = problem_;
  if (transposed_)
    transpose(c_transposed_.get() + rows.begin * p.n + columns.begin, p.n,
              o.c + columns.begin * p.m + rows.begin, p.m, rows.end - rows.begin,
              columns.end - columns.begin);
}
extern template class PackedProduct<false>;  // in packed.cpp
extern template class PackedProduct<true>;   // in fused.cpp

}  // namespace stepladder::matmul::inline STEPLADDER_ISA

// A C of few rows or columns: the long operand is read in place, and nothing of it is packed.
// `packed` copies panels of it that only few tiles would read, and fills its vectors from the short
// side. Here the layout of the long operand decides: rows along K are multiplied as dot products
// (dot_products.hpp). Rows along C pass a wide tile of C in registers if the long operand fits L2,
// or if one tile is all of C (stream_tiles.hpp); otherwise, whole rows are read in memory order,
// and added to a C in L1 (stream_rows.hpp). Threads divide K if C has too few elements for all of
// them, or if the short operand of a long K has to be transposed: each transposes its own part.
//
// Expected: with one row, the bandwidth of the memory or cache that holds the long operand; with 2
// to 8 rows 1.1x to 3x over `packed`. From memory, nothing from about 16 rows on, where packing
// pays; from L2, 1.0x to 1.5x up to 64 rows; dot products 0.9x to 1.3x with 16 to 24 rows.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/partition.hpp"
#include "kernels/common/cpu/simd.hpp"
#include "kernels/common/cpu/transpose.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/matmul/cpu/partial_sums.hpp"
#include "kernels/matmul/cpu/separate_epilogue.hpp"
#include "kernels/matmul/cpu/skinny/dot_products.hpp"
#include "kernels/matmul/cpu/skinny/stream_rows.hpp"
#include "kernels/matmul/cpu/skinny/stream_tiles.hpp"
#include "kernels/matmul/matmul.hpp"

namespace stepladder::matmul {
namespace {

// C, or Cᵀ if C has fewer columns than rows, is short [rows, K] · long [K, columns].
class Skinny final : public Plan {
 public:
  Skinny(const Problem& problem, const Resources& resources)
      : problem_(problem),
        transposed_(problem.n < problem.m),
        rows_(std::min(problem.m, problem.n)),
        columns_(std::max(problem.m, problem.n)),
        short_along_k_(rows_ == 1 || (transposed_ ? problem.transpose_b : !problem.transpose_a)),
        streams_(transposed_ ? problem.transpose_a : !problem.transpose_b),
        threads_(useful_threads(problem, resources.threads)),
        fits_l2_(problem.k * columns_ <= threads_ * (rows_ == 1 ? 2 * l2_floats : l2_floats)),
        one_tile_(StreamTiles::is_one_tile(rows_, columns_)),
        divides_k_(threads_ > 1 && (columns_ < threads_ * min_columns_per_thread ||
                                    (streams_ && one_tile_ && !fits_l2_) ||
                                    (packs_short() && columns_ <= problem.k / 8))) {
    if (rows_ > max_rows_of_tiles) throw Unsupported("built for a C of at most 64 rows or columns");
    if (!streams_ && rows_ > max_rows_of_dot_products)
      throw Unsupported(
          "more than 24 rows or columns of C only if the rows of the long operand run along C");
    if (streams_ && !uses_tiles() && rows_ > max_rows_from_memory)
      throw Unsupported(
          "more than 16 rows or columns of C only if the long operand takes at most 2 MiB for each "
          "thread");
    if (packs_short()) short_ = aligned_array<float>(rows_ * packed_row());
    if (divides_k_) partial_ = aligned_array<float>((threads_ - 1) * rows_ * columns_);
    if (streams_ && !uses_tiles()) {
      block_floats_ = round_up(StreamRows::workspace(rows_, columns_), line_floats);
      blocks_ = aligned_array<float>(threads_ * block_floats_);
    }
  }

  void run(const Operands& operands) override {
    if (threads_ == 1) {
      pack_part(operands, 0);
      run_part(operands, 0);
    } else {
#pragma omp parallel num_threads(threads_)
      {
        if (packs_short()) {
#pragma omp for schedule(static, 1)
          for (int thread = 0; thread < threads_; ++thread) pack_part(operands, thread);
        }
#pragma omp for schedule(static, 1) nowait
        for (int thread = 0; thread < threads_; ++thread) run_part(operands, thread);
      }
      const std::int64_t count = rows_ * columns_;
      if (divides_k_) add_partial_sums(partial_.get(), threads_ - 1, count, {0, count}, operands.c);
    }
    separate_epilogue(problem_, operands, threads_);
  }

 private:
  // Dot products need both operands along K.
  bool packs_short() const { return !streams_ && !short_along_k_; }
  // Floats from row to row of the packed short operand: an odd number of cache lines, since rows 4
  // KiB apart would share the sets of L1.
  std::int64_t packed_row() const {
    return ceil_div(problem_.k, line_floats) / 2 * 2 * line_floats + line_floats;
  }
  bool uses_tiles() const { return fits_l2_ || one_tile_; }

  static constexpr std::int64_t max_rows_of_dot_products = 24, max_rows_from_memory = 16,
                                max_rows_of_tiles = 64;
  // A thread's share of L2. The tile of one row is so wide that an L3 feeds it as fast.
  static constexpr std::int64_t l2_floats = 1 << 19;
  static constexpr std::int64_t min_columns_per_thread = 64;

  // Waking a thread pays from about a microsecond of arithmetic, or of reading from a cache, on.
  static int useful_threads(const Problem& p, int threads) {
    constexpr double flops_of_a_fork = 1.2e5, bytes_of_a_fork = 1 << 16;
    const double parts = std::max(flops(p) / flops_of_a_fork, bytes_read(p) / bytes_of_a_fork);
    return parts >= threads ? threads : std::max(1, static_cast<int>(parts));
  }

  // Its part of K, the one that it multiplies if threads divide K.
  void pack_part(const Operands& operands, int thread) {
    if (!packs_short()) return;
    const Range k = partition(problem_.k, threads_, thread, line_floats);
    const float* short_side = transposed_ ? operands.b : operands.a;
    transpose(short_side + k.begin * rows_, rows_, short_.get() + k.begin, packed_row(),
              k.end - k.begin, rows_);
  }

  void run_part(const Operands& operands, int thread) {
    Range columns{0, columns_}, k{0, problem_.k};
    float* c = operands.c;
    std::int64_t c_row = transposed_ ? 1 : columns_, c_column = transposed_ ? rows_ : 1;
    if (divides_k_) {
      k = partition(k.end, threads_, thread, line_floats);
      if (thread > 0) c = partial_.get() + (thread - 1) * rows_ * columns_;
    } else {
      columns = partition(columns_, threads_, thread, line_floats);
    }
    const float* long_side = transposed_ ? operands.a : operands.b;
    const float* short_side = transposed_ ? operands.b : operands.a;
    if (k.begin == k.end || columns.begin == columns.end) {
      if (divides_k_) std::fill_n(c, rows_ * columns_, 0.0F);
      return;
    }
    if (!streams_) {
      DotProducts::multiply(
          {packs_short() ? short_.get() : short_side, packs_short() ? packed_row() : problem_.k,
           long_side, problem_.k, c, c_row, c_column},
          rows_, columns, k);
      return;
    }
    const StreamOperands stream{short_side,
                                short_along_k_ ? problem_.k : 1,
                                short_along_k_ ? 1 : rows_,
                                long_side,
                                columns_,
                                c,
                                c_row,
                                c_column};
    if (uses_tiles())
      StreamTiles::multiply(stream, rows_, columns, k);
    else
      StreamRows::multiply(stream, rows_, columns, k, blocks_.get() + thread * block_floats_);
  }

  Problem problem_;
  bool transposed_;
  std::int64_t rows_, columns_;  // of C, or of Cᵀ: short and long side
  bool short_along_k_;           // the layout of the short operand
  bool streams_;                 // the rows of the long operand run along C
  int threads_;
  bool fits_l2_;   // the long operand, that of the threads
  bool one_tile_;  // of StreamTiles
  bool divides_k_;
  AlignedArray<float> short_;    // [rows, K] if the short operand is packed
  AlignedArray<float> partial_;  // [threads - 1, C], in the layout of C, if the threads divide K
  std::int64_t block_floats_ = 0;
  AlignedArray<float> blocks_;  // [threads, block of C] if rows are streamed
};

constexpr VariantInfo info{
    .name = "skinny",
    .technique = Technique::openmp,
    .builds_on = "packed_openmp",
    .adds = "a C of few rows or columns: the long operand read in place, without packing",
    .idea = Idea::packing,
    .isa = build_isa,
    .threaded = true,
    .epilogue = true,
};

const Registration registration{info, make_plan<Matmul, Skinny>};

}  // namespace
}  // namespace stepladder::matmul

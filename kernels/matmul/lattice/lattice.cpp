// The lattice of matmul: the loops of `serial_ikj`, and every combination of five techniques.
//
//   blocking   blocks of op(B), [256, 480], stay in L2 while all rows of A pass
//   vectors    4, 8 or 16 columns per instruction; otherwise one float
//   tile       a tile of C in registers for all steps of k of a block; otherwise C is loaded and
//              stored at every step
//   packing    op(B) is copied into panels as wide as a tile, or into rows side by side
//   threads    C is divided among OpenMP threads: its rows; with a tile, its longer side
//
// A transposed B that is not packed is copied into rows, as `serial_ikj` does.
#include "kernels/common/lattice.hpp"

#include <algorithm>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/partition.hpp"
#include "kernels/common/cpu/product.hpp"
#include "kernels/common/cpu/transpose.hpp"
#include "kernels/matmul/cpu/simd_block.hpp"
#include "kernels/matmul/matmul.hpp"

namespace stepladder::matmul {
namespace {

constexpr Switch switches[] = {{"blocking", Idea::cache_blocking},
                               {"vectors", Idea::vectors},
                               {"tile", Idea::register_tile},
                               {"packing", Idea::packing},
                               {"threads", Idea::threads}};

template <unsigned corner>
class Corner final : public Plan {
  static constexpr bool blocking = (corner & 1U) != 0, vectors = (corner & 2U) != 0,
                        tile = (corner & 4U) != 0, packing = (corner & 8U) != 0;
  using Product = stepladder::Product<vectors, tile, packing>;

 public:
  Corner(const Problem& problem, const Resources& resources)
      : problem_(problem),
        threads_(resources.threads),
        by_columns_(tile ? problem.n > problem.m : divides_columns(problem, resources.threads)),
        workspace_size_(workspace()),
        workspace_(aligned_array<float>(static_cast<std::size_t>(workspace_size_ * threads_))) {
    std::fill_n(workspace_.get(), workspace_size_ * threads_, 0.0F);  // what pads panels is read
  }

  void run(const Operands& o) override {
    if (threads_ == 1) return multiply(o, 0);
#pragma omp parallel for num_threads(threads_) schedule(static, 1)
    for (int thread = 0; thread < threads_; ++thread) multiply(o, thread);
  }

 private:
  static constexpr std::int64_t block_k = 256, block_n = 480;  // whole tiles of 48, 16, 8 and 3

  std::int64_t k_of_block() const { return blocking ? std::min(block_k, problem_.k) : problem_.k; }
  std::int64_t n_of_block() const { return blocking ? std::min(block_n, problem_.n) : problem_.n; }
  bool copies() const { return packing || problem_.transpose_b; }
  // Between rows of the copy of B: panels; or rows, of which no two are a power of two apart.
  std::int64_t row_of_copy() const {
    return Product::has_panels ? Product::panel : Product::whole_panels(n_of_block()) + line_floats;
  }
  std::int64_t workspace() const {
    if (!copies()) return 0;
    return k_of_block() *
           (Product::has_panels ? Product::whole_panels(n_of_block()) : row_of_copy());
  }

  // The part of a thread.
  void multiply(const Operands& o, int thread) const {
    const Problem& p = problem_;
    Range rows{0, p.m}, columns{0, p.n};
    if (by_columns_)
      columns = partition(p.n, threads_, thread, line_floats);
    else
      rows = partition(p.m, threads_, thread);
    float* copy = workspace_.get() + thread * workspace_size_;
    const std::int64_t a_row = p.transpose_a ? 1 : p.k, a_step = p.transpose_a ? p.m : 1;
    for (std::int64_t j = columns.begin; j < columns.end; j += n_of_block())
      for (std::int64_t l = 0; l < p.k; l += k_of_block()) {
        const std::int64_t n = std::min(n_of_block(), columns.end - j);
        const std::int64_t k = std::min(k_of_block(), p.k - l);
        if (copies()) copy_block(o.b, l, k, j, n, copy);
        const float* b = copies() ? copy : o.b + l * p.n + j;
        const std::int64_t b_row = copies() ? row_of_copy() : p.n;
        Product::multiply(o.a + rows.begin * a_row + l * a_step, a_row, a_step, b, b_row,
                          o.c + rows.begin * p.n + j, p.n, rows.end - rows.begin, n, k, l > 0);
      }
  }

  // Rows [l, l + k) and columns [j, j + n) of op(B), into panels, or into rows.
  void copy_block(const float* b, std::int64_t l, std::int64_t k, std::int64_t j, std::int64_t n,
                  float* copy) const {
    const Problem& p = problem_;
    const std::int64_t width = Product::has_panels ? Product::panel : n;
    for (std::int64_t column = 0; column < n; column += width, copy += k * row_of_copy()) {
      const std::int64_t count = std::min(width, n - column);
      if (p.transpose_b)
        transpose(b + (j + column) * p.k + l, p.k, copy, row_of_copy(), count, k);
      else
        for (std::int64_t row = 0; row < k; ++row)
          std::copy_n(b + (l + row) * p.n + j + column, count, copy + row * row_of_copy());
    }
  }

  Problem problem_;
  int threads_;
  bool by_columns_;
  std::int64_t workspace_size_;    // floats of a thread
  AlignedArray<float> workspace_;  // [threads, workspace_size]: the copy of a block of B
};

constexpr Lattice lattice{.below = "serial_ikj", .switches = switches};
[[maybe_unused]] const bool registered = register_corners<Matmul, Corner>(
    lattice, std::make_integer_sequence<unsigned, 1U << (std::size(switches) - 1)>{});

}  // namespace
}  // namespace stepladder::matmul

// Weights that stay the same, as when a trained network answers: the panels of B are packed once, by
// prepare(), for as many products as are wanted. It saves packed_openmp a store for every element of B,
// about 1 % where A has 64 rows, and a transposed B its turning, 0.4 cycles an element: a tenth of
// the product with 64 rows, a third with 16. In training it saves nothing, since weights change with every
// step.
#include <algorithm>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/gemm_tile.hpp"
#include "kernels/common/cpu/simd.hpp"
#include "kernels/common/cpu/transpose.hpp"
#include "kernels/matmul/matmul.hpp"
#include "kernels/common/cpu/partition.hpp"

namespace stepladder::matmul {
namespace {

using Tile = GemmTile<>;

class Prepacked final : public Plan {
 public:
  Prepacked(const Problem& problem, const Resources& resources)
      : problem_(problem),
        panels_((problem.n + Tile::columns - 1) / Tile::columns),
        threads_(resources.threads),
        b_(aligned_array<float>(static_cast<std::size_t>(panels_ * panel_size()))) {}

  void prepare(const Operands& o) override {
    const Problem& p = problem_;
#pragma omp parallel for num_threads(threads_) schedule(static)
    for (std::int64_t panel = 0; panel < panels_; ++panel) {
      float* to = b_.get() + panel * panel_size();
      const std::int64_t j = panel * Tile::columns, width = width_of(panel);
      if (p.transpose_b)
        transpose(o.b + j * p.k, p.k, to, Tile::columns, width, p.k);
      else
        for (std::int64_t l = 0; l < p.k; ++l)
          std::copy_n(o.b + l * p.n + j, width, to + l * Tile::columns);
    }
  }

  void run(const Operands& o) override {
    if (threads_ == 1) return multiply(o, {0, problem_.m}, {0, panels_});
    // Whole panels for each thread, or rows where there are too few panels.
    const bool by_panels = panels_ % threads_ == 0 || panels_ > 8 * threads_;
#pragma omp parallel for num_threads(threads_) schedule(static, 1)
    for (int thread = 0; thread < threads_; ++thread)
      if (by_panels)
        multiply(o, {0, problem_.m}, part_of(panels_, 1, thread, threads_));
      else
        multiply(o, part_of(problem_.m, Tile::rows, thread, threads_), {0, panels_});
  }

 private:
  static constexpr std::int64_t most_depth = 512, most_rows = 240;  // as packed has them

  std::int64_t panel_size() const { return problem_.k * Tile::columns; }
  std::int64_t width_of(std::int64_t panel) const {
    return std::min(Tile::columns, problem_.n - panel * Tile::columns);
  }

  void multiply(const Operands& o, Range rows, Range panels) const {
    const Problem& p = problem_;
    const std::int64_t a_row = p.transpose_a ? 1 : p.k, a_step = p.transpose_a ? p.m : 1;
    for (std::int64_t l = 0; l < p.k; l += most_depth)
      for (std::int64_t first = rows.begin; first < rows.end; first += most_rows)
        for (std::int64_t panel = panels.begin; panel < panels.end; ++panel) {
          const float* b = b_.get() + panel * panel_size() + l * Tile::columns;
          const std::int64_t height = std::min(most_rows, rows.end - first);
          const std::int64_t tiles = (height + Tile::rows - 1) / Tile::rows;
          for (std::int64_t t = 0; t < tiles; ++t) {  // of heights as equal as can be
            const Range tile = part_of(height, 1, t, tiles);
            const std::int64_t i = first + tile.begin;
            Tile::multiply_strided(std::min(most_depth, p.k - l), o.a + i * a_row + l * a_step,
                                   a_row, a_step, b, Tile::columns,
                                   o.c + i * p.n + panel * Tile::columns, p.n,
                                   tile.end - tile.begin, width_of(panel), l > 0);
          }
        }
  }

  Problem problem_;
  std::int64_t panels_;
  int threads_;
  AlignedArray<float> b_;  // [panels, k, NR]
};

constexpr VariantInfo info{
    .name = "prepacked",
    .technique = Technique::openmp,
    .builds_on = "packed_openmp",
    .adds = "B packed once for many products; for weights that do not change",
    .isa = build_isa,
    .threaded = true,
    .prepacked = true,
};

const Registration registration{info, make_plan<Matmul, Prepacked>};

}  // namespace
}  // namespace stepladder::matmul

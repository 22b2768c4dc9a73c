// A packed product on many cores: the plan of packed_openmp and of fused. A template on Arch, because
// its files are built once per ISA.
#pragma once

#include <algorithm>

#include "kernels/matmul/cpu/packed/packed_product.hpp"
#include "kernels/matmul/cpu/separate_epilogue.hpp"

namespace stepladder::matmul::inline STEPLADDER_ISA {

template <bool fuses = false>
class PackedGrid final : public Plan {
 public:
  PackedGrid(const Problem& problem, const Resources& resources)
      : problem_(problem),
        threads_(threads_worth(problem, resources.threads)),
        product_(problem, threads_),
        grid_(grid_of(product_.computed(), threads_)) {}

  void run(const Operands& operands) override {
    if (threads_ == 1) {
      product_.multiply(operands, {0, product_.computed().m}, {0, product_.computed().n});
    } else {
#pragma omp parallel for num_threads(threads_) schedule(static, 1)
      for (int thread = 0; thread < threads_; ++thread) multiply_share(operands, thread);
    }
    if constexpr (!fuses) separate_epilogue(problem_, operands, threads_);
  }

 private:
  using Tile = GemmTile<>;

  struct Grid {
    int rows, columns;  // threads along m and along n
  };

  void multiply_share(const Operands& operands, int thread) {
    const Problem& p = product_.computed();
    product_.multiply(operands, part_of(p.m, Tile::rows, thread / grid_.columns, grid_.rows),
                      part_of(p.n, Tile::lanes, thread % grid_.columns, grid_.columns), thread);
  }

  // A thread is worth waking for about a microsecond of work, a fork and join.
  static int threads_worth(const Problem& p, int threads) {
    const double shares = flops(p) / 1.2e5;
    return shares >= threads ? threads : std::max(1, static_cast<int>(shares));
  }

  // The grid that makes the largest share of C cheapest. A thread packs B for its columns whatever
  // its rows, so that costs as much as some more rows.
  static Grid grid_of(const Problem& p, int threads) {
    constexpr std::int64_t rows_worth_of_packing = 8;
    const auto share = [](std::int64_t size, std::int64_t unit, int parts) {
      return ((size + unit - 1) / unit + parts - 1) / parts * unit;
    };
    Grid best{1, threads};
    double least = 0;
    for (int rows = 1; rows <= threads; ++rows) {
      if (threads % rows != 0) continue;
      const int columns = threads / rows;
      const double cost =
          static_cast<double>(share(p.m, Tile::rows, rows) + rows_worth_of_packing) *
          static_cast<double>(std::min(p.n, share(p.n, Tile::lanes, columns)));
      if (rows == 1 || cost < least) {
        best = {rows, columns};
        least = cost;
      }
    }
    return best;
  }

  Problem problem_;
  int threads_;
  PackedProduct<fuses> product_;
  Grid grid_;
};

}  // namespace stepladder::matmul::inline STEPLADDER_ISA

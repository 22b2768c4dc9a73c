// packed on many cores: each thread computes its own rectangle of C as packed would, and packs the
// panels of B for it into its own cache. There is nothing to wait for but the end. Products too
// small to pay for waking a thread use fewer of them.
#include <algorithm>

#include "kernels/common/simd.hpp"
#include "kernels/matmul/packed_product.hpp"

namespace stepladder::matmul {
namespace {

// A thread is worth waking for about two microseconds of work, a fork and join.
int threads_worth(const Problem& p, int threads) {
  const double shares = flops(p) / 2e5;
  return shares >= threads ? threads : std::max(1, static_cast<int>(shares));
}

struct Grid {
  int rows, columns;  // threads along m and along n
};

// The grid that makes the largest share of C cheapest. A thread packs B for its columns whatever
// its rows, so that costs as much as some more rows.
Grid grid_of(const Problem& p, int threads) {
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
        static_cast<double>(share(p.m, GemmTile<Arch>::rows, rows) + rows_worth_of_packing) *
        static_cast<double>(std::min(p.n, share(p.n, GemmTile<Arch>::lanes, columns)));
    if (rows == 1 || cost < least) {
      best = {rows, columns};
      least = cost;
    }
  }
  return best;
}

class PackedOpenMp final : public Plan {
 public:
  PackedOpenMp(const Problem& problem, const Resources& resources)
      : threads_(threads_worth(problem, resources.threads)),
        product_(problem, threads_),
        grid_(grid_of(product_.computed(), threads_)) {}

  void run(const Operands& operands) override {
    const Problem& p = product_.computed();
#pragma omp parallel for num_threads(threads_) schedule(static, 1)
    for (int thread = 0; thread < threads_; ++thread)
      product_.multiply(
          operands, part_of(p.m, GemmTile<Arch>::rows, thread / grid_.columns, grid_.rows),
          part_of(p.n, GemmTile<Arch>::lanes, thread % grid_.columns, grid_.columns), thread);
  }

 private:
  int threads_;
  PackedProduct<Arch> product_;
  Grid grid_;
};

constexpr VariantInfo info{
    .name = "packed_openmp",
    .technique = Technique::openmp,
    .builds_on = "packed",
    .adds = "C split into a grid of shares, one for each OpenMP thread",
    .isa = build_isa,
    .threaded = true,
};

const Registration registration{info, make_plan<Matmul, PackedOpenMp>};

}  // namespace
}  // namespace stepladder::matmul

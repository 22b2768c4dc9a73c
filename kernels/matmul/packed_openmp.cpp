// packed on many cores. The threads pack a block of A together, wait for each other, and each
// computes its own rectangle of C; the panels of B for it they pack by themselves, into their own
// first-level cache. Sharing the block matters: packed by each thread for itself, it would cost as
// much on 16 threads as on one. Products too small to pay for waking a thread use fewer of them.
#include <algorithm>

#include "kernels/common/simd.hpp"
#include "kernels/matmul/packed_product.hpp"

namespace stepladder::matmul {
namespace {

// A thread is worth waking for about 5 microseconds of work, several times a fork and join.
int threads_worth(const Problem& p, int threads) {
  const double shares = flops(p) / 5e5;
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
      : problem_(problem),
        threads_(threads_worth(problem, resources.threads)),
        grid_(grid_of(problem, threads_)),
        product_(problem, grid_.rows),
        a_block_(aligned_array<float>(product_.block_size())),
        b_strips_(aligned_array<float>(product_.strip_size() * threads_)) {}

  void run(const Operands& o) override {
    const Problem& p = problem_;
#pragma omp parallel num_threads(threads_)
    for (std::int64_t l = 0; l < p.k; l += product_.depth()) {
      const Range depths{l, std::min(p.k, l + product_.depth())};
      for (std::int64_t i = 0; i < p.m; i += product_.block_rows()) {
        const Range rows{i, std::min(p.m, i + product_.block_rows())};
        if (product_.packs_a()) {
#pragma omp barrier  // the block before is no longer needed
#pragma omp for schedule(static, 1)
          for (int thread = 0; thread < threads_; ++thread) {
            const Range share = share_of(rows, thread, threads_);
            product_.pack_a(o.a, share, depths, panels_of(share, rows, depths));
          }
        }
#pragma omp for schedule(static, 1) nowait
        for (int thread = 0; thread < threads_; ++thread) {
          const Range own = share_of(rows, thread / grid_.columns, grid_.rows);
          const Range columns =
              part_of(p.n, GemmTile<Arch>::lanes, thread % grid_.columns, grid_.columns);
          product_.multiply(o, panels_of(own, rows, depths), own, columns, depths,
                            b_strips_.get() + thread * product_.strip_size());
        }
      }
    }
  }

 private:
  static Range share_of(Range rows, int part, int parts) {
    const Range share = part_of(rows.end - rows.begin, GemmTile<Arch>::rows, part, parts);
    return {rows.begin + share.begin, rows.begin + share.end};
  }

  // Where the panels of `own` rows begin in the packed block of `rows`.
  float* panels_of(Range own, Range rows, Range depths) const {
    return a_block_.get() + (own.begin - rows.begin) * (depths.end - depths.begin);
  }

  Problem problem_;
  int threads_;
  Grid grid_;
  PackedProduct<Arch> product_;
  AlignedArray<float> a_block_;   // [block_rows, depth], shared
  AlignedArray<float> b_strips_;  // [threads, depth, 48 or 64]
};

constexpr VariantInfo info{
    .name = "packed_openmp",
    .technique = Technique::openmp,
    .builds_on = "packed",
    .adds = "blocks of A packed together by OpenMP threads, C split into a grid of shares",
    .isa = build_isa,
    .threaded = true,
};

const Registration registration{info, make_plan<Matmul, PackedOpenMp>};

}  // namespace
}  // namespace stepladder::matmul

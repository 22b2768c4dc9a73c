// The plan of packed_openmp, packed_split_k, fused and prepacked: a packed product on many cores.
// They divide C or K.
#pragma once

#include <algorithm>
#include <vector>

#include "kernels/common/integer_math.hpp"
#include "kernels/matmul/cpu/packed/packed_product.hpp"
#include "kernels/matmul/cpu/partial_sums.hpp"
#include "kernels/matmul/cpu/separate_epilogue.hpp"

namespace stepladder::matmul::inline STEPLADDER_ISA {

// prepacks: prepare() packs B, each part of its columns for the threads that compute them.
// splits_k: K is divided wherever it has enough steps.
template <bool fuses = false, bool prepacks = false, bool splits_k = false>
class PackedGrid final : public Plan {
 public:
  PackedGrid(const Problem& problem, const Resources& resources)
      : problem_(problem),
        threads_(useful_threads(problem, resources.threads)),
        product_(problem, threads_, prepacks ? Product::Use::prepacks : Product::Use::plain),
        grid_(grid_of(product_.computed(), threads_)),
        divides_k_(
            !fuses && threads_ > 1 &&
            (splits_k ? problem.k >= threads_ * line_floats : pays_to_divide_k(problem, threads_))),
        partial_(aligned_array<float>(
            static_cast<std::size_t>(divides_k_ ? (threads_ - 1) * problem.m * problem.n : 0))) {
    if (!prepacks || !product_.can_prepack()) return;
    for (int part = 0; part < parts(); ++part)
      prepacked_.push_back(panels_of_b(product_.prepacked_size(columns_of(part))));
  }

  void prepare(const Operands& operands) override {
    const auto count = static_cast<int>(prepacked_.size());
    if (count == 0) return;
#pragma omp parallel for num_threads(threads_) schedule(static, 1)
    for (int part = 0; part < count; ++part)
      product_.prepack(operands, columns_of(part), prepacked(part));
  }

  void run(const Operands& operands) override {
    if (threads_ == 1) {
      product_.multiply(operands, {0, product_.computed().m}, columns_of(0), 0, false,
                        prepacked(0));
    } else if (divides_k_) {
#pragma omp parallel num_threads(threads_)
      {
#pragma omp for schedule(static, 1)
        for (int thread = 0; thread < threads_; ++thread) multiply_slice(operands, thread);
#pragma omp for schedule(static, 1) nowait
        for (int thread = 0; thread < threads_; ++thread) add_rows(operands, thread);
      }
    } else {
#pragma omp parallel for num_threads(threads_) schedule(static, 1)
      for (int thread = 0; thread < threads_; ++thread) multiply_part(operands, thread);
    }
    if constexpr (!fuses) separate_epilogue(problem_, operands, threads_);
  }

  std::string remark() const override {
    return splits_k && threads_ > 1 && !divides_k_ ? "K is too short to divide: C is divided" : "";
  }

 private:
  using Tile = GemmTile<>;
  using Product = PackedProduct<fuses>;

  struct Grid {
    int rows, columns;  // threads along m and along n
  };

  // The parts of the columns that threads compute.
  int parts() const { return threads_ == 1 || divides_k_ ? 1 : grid_.columns; }
  Range columns_of(int part) const {
    return partition(product_.computed().n, parts(), part, Tile::lanes);
  }
  float* prepacked(int part) const {
    return prepacked_.empty() ? nullptr : prepacked_[static_cast<std::size_t>(part)].get();
  }

  void multiply_part(const Operands& operands, int thread) {
    const int part = thread % grid_.columns;
    product_.multiply(
        operands, partition(product_.computed().m, grid_.rows, thread / grid_.columns, Tile::rows),
        columns_of(part), thread, false, prepacked(part));
  }

  // A small C with a long K: in a grid every thread would pack a B for few rows, or read a part of
  // each row of B. Adding the partial sums, and a second barrier, cost about 5 microseconds.
  static bool pays_to_divide_k(const Problem& p, int threads) {
    constexpr double flops_of_a_thread = 1.5e7, k_over_side = 4.5;  // side: sqrt(m n)
    const double k = static_cast<double>(p.k) / threads;
    return flops(p) >= flops_of_a_thread * threads &&
           k * k >= k_over_side * k_over_side * static_cast<double>(p.m * p.n);
  }

  void multiply_slice(const Operands& operands, int thread) {
    const Problem& p = product_.computed();
    float* c =
        thread == 0 ? product_.c_of_computed(operands) : partial_.get() + (thread - 1) * p.m * p.n;
    product_.multiply_slice(operands, partition(p.k, threads_, thread, line_floats), c, thread,
                            prepacked(0));
  }

  void add_rows(const Operands& operands, int thread) {
    const Problem& p = product_.computed();
    const Range rows = partition(p.m, threads_, thread, line_floats);
    add_partial_sums(partial_.get(), threads_ - 1, p.m * p.n, {rows.begin * p.n, rows.end * p.n},
                     product_.c_of_computed(operands));
    product_.finish(operands, rows, {0, p.n});
  }

  // Waking a thread pays from about a microsecond of work on, the time of a fork and join.
  static int useful_threads(const Problem& p, int threads) {
    constexpr double flops_of_a_fork = 1.2e5;
    const double parts = flops(p) / flops_of_a_fork;
    return parts >= threads ? threads : std::max(1, static_cast<int>(parts));
  }

  // The grid whose largest part costs least. Each thread packs B for its columns, which costs as
  // much as some more rows, and reads A for its rows, which costs as much as some more columns.
  // Threads side by side write to one cache line in each row of C, unless rows begin at cache
  // lines: that takes as long as about 2,500 multiply-adds. What reads C next divides it in memory
  // order: half of a row that another core has written comes from its cache.
  static Grid grid_of(const Problem& p, int threads) {
    constexpr std::int64_t packing_rows = 8, reading_columns = 8;
    constexpr double read_elsewhere = 1.05;
    const double shared_line = p.n % line_floats == 0 ? 0 : 2500.0 / static_cast<double>(p.k);
    const auto largest_part = [](std::int64_t size, std::int64_t unit, int parts) {
      return ceil_div(ceil_div(size, unit), parts) * unit;
    };
    Grid best{1, threads};
    double least = 0;
    for (int rows = 1; rows <= threads; ++rows) {
      if (threads % rows != 0) continue;
      const int columns = threads / rows;
      const double cost =
          static_cast<double>(largest_part(p.m, Tile::rows, rows) + packing_rows) *
          (static_cast<double>(std::min(p.n, largest_part(p.n, Tile::lanes, columns)) +
                               reading_columns) +
           (columns > 1 ? shared_line : 0)) *
          (columns > 1 ? read_elsewhere : 1);
      if (rows == 1 || cost < least) {
        best = {rows, columns};
        least = cost;
      }
    }
    return best;
  }

  Problem problem_;
  int threads_;
  Product product_;
  Grid grid_;
  bool divides_k_;
  AlignedArray<float> partial_;                 // [threads - 1, C of computed()] if they divide K
  std::vector<AlignedArray<float>> prepacked_;  // B of each part, if it can be packed ahead
};

}  // namespace stepladder::matmul::inline STEPLADDER_ISA

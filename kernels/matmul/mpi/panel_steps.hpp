// What the SUMMA rungs share: the steps along K, the panels of each, and the local product.
//
//   panel of op(A)   this rank's rows of C x width of K, packed as its block is stored
//   panel of op(B)   width of K x this rank's columns of C, likewise
//
// A step ends where the block of an owner ends, so that each of its panels has one owner. Each rung
// also includes kernels/common/mpi.hpp itself, by which the build detects that it needs MPI.
#pragma once

#include <algorithm>
#include <limits>
#include <map>
#include <vector>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/simd.hpp"
#include "kernels/common/mpi.hpp"
#include "kernels/matmul/cpu/packed/packed_product.hpp"
#include "kernels/matmul/distribution.hpp"

namespace stepladder::matmul::inline STEPLADDER_ISA {

struct Panel {
  float* values;  // [count]; complete on the owner, the others receive it here
  int count;
  int owner;  // in the row of the grid for op(A), in the column for op(B)
};
struct Panels {
  Panel a, b;
};

// The panels of one operand.
class PanelsOf {
 public:
  // k: of this rank's block. other: its rows of op(A), or columns of op(B). by_k: stored [k,
  // other]; otherwise [other, k]. place: what this rank is called as an owner.
  PanelsOf(Range k, std::int64_t other, bool by_k, int place, std::int64_t width, int buffers)
      : k_(k),
        other_(other),
        by_k_(by_k),
        place_(place),
        buffer_size_(other * width),
        buffers_(aligned_array<float>(buffers * buffer_size_)) {}

  Panel panel(const float* block, Range k, int owner, int buffer) const {
    const std::int64_t width = k.end - k.begin, before = k.begin - k_.begin;
    Panel panel{buffers_.get() + buffer * buffer_size_, static_cast<int>(width * other_), owner};
    if (owner != place_) return panel;
    if (by_k_) {  // sent from its place: MPI only reads the values of a root
      panel.values = const_cast<float*>(block) + before * other_;
      return panel;
    }
    for (std::int64_t row = 0; row < other_; ++row)
      std::copy_n(block + row * (k_.end - k_.begin) + before, width, panel.values + row * width);
    return panel;
  }

 private:
  Range k_;
  std::int64_t other_;
  bool by_k_;
  int place_;
  std::int64_t buffer_size_;
  AlignedArray<float> buffers_;  // [buffers, buffer_size_]
};

class PanelSteps {
 public:
  static constexpr std::int64_t width = 256;  // of K, at most

  // Collective. buffers: of panels that exist at the same time.
  PanelSteps(const Problem& problem, MPI_Comm all, int buffers)
      : PanelSteps(supported(problem), grid_shape(problem), all, rank_in(all), buffers) {}

  int count() const { return static_cast<int>(steps_.size()); }
  MPI_Comm grid_row() const { return row_.get(); }        // the owners of panels of op(A)
  MPI_Comm grid_column() const { return column_.get(); }  // the owners of panels of op(B)

  // The panels of a step, to be broadcast. o: the blocks of this rank. buffer < buffers.
  Panels panels(const Operands& o, int step, int buffer) const {
    const Step& s = steps_[static_cast<std::size_t>(step)];
    return {a_.panel(o.a, s.k, s.owner_of_a, buffer), b_.panel(o.b, s.k, s.owner_of_b, buffer)};
  }

  // Adds the product of a step's panels to this rank's block of C; the first step overwrites it.
  // The block is computed in strips of columns, and after_strip() called after each.
  template <class AfterStrip>
  void multiply(const Panels& panels, float* c, int step, int strips, AfterStrip after_strip) {
    PackedProduct<>* const product = steps_[static_cast<std::size_t>(step)].product;
    if (product == nullptr) return;  // the block of C is empty
    const Problem& p = product->computed();
    for (int strip = 0; strip < strips; ++strip) {
      product->multiply({.a = panels.a.values, .b = panels.b.values, .c = c}, {0, p.m},
                        partition(p.n, strips, strip, GemmTile<>::columns), 0, step > 0);
      after_strip();
    }
  }

 private:
  struct Step {
    Range k;
    int owner_of_a, owner_of_b;
    PackedProduct<>* product;
  };

  PanelSteps(const Problem& p, GridShape grid, MPI_Comm all, int rank, int buffers)
      : i_(rank / grid.columns),
        j_(rank % grid.columns),
        m_(size(partition(p.m, grid.rows, i_))),
        n_(size(partition(p.n, grid.columns, j_))),
        row_(split(all, i_, j_)),
        column_(split(all, j_, i_)),
        a_(partition(p.k, grid.columns, j_), m_, p.transpose_a, j_, width, buffers),
        b_(partition(p.k, grid.rows, i_), n_, !p.transpose_b, i_, width, buffers) {
    for (Range k{0, 0}; k.begin < p.k; k.begin = k.end) {
      const int owner_of_a = owner(p.k, grid.columns, k.begin);
      const int owner_of_b = owner(p.k, grid.rows, k.begin);
      const std::int64_t end = std::min(partition(p.k, grid.columns, owner_of_a).end,
                                        partition(p.k, grid.rows, owner_of_b).end);
      // Panels of nearly equal widths as far as both owners last.
      k.end = k.begin + ceil_div(end - k.begin, ceil_div(end - k.begin, width));
      steps_.push_back({k, owner_of_a, owner_of_b, product_of(p, k.end - k.begin)});
    }
  }

  static std::int64_t size(Range range) { return range.end - range.begin; }

  static int rank_in(MPI_Comm communicator) {
    int rank = 0;
    MPI_Comm_rank(communicator, &rank);
    return rank;
  }

  static const Problem& supported(const Problem& p) {
    const GridShape grid = grid_shape(p);
    const std::int64_t other = std::max(ceil_div(p.m, grid.rows), ceil_div(p.n, grid.columns));
    if (width * other > std::numeric_limits<int>::max())
      throw Unsupported("MPI_Bcast takes fewer than 2^31 elements, and a panel has more");
    return p;
  }

  // The ranks of the same color, in the order of their places.
  static MPI_Comm split(MPI_Comm all, int color, int place) {
    MPI_Comm part = MPI_COMM_NULL;
    MPI_Comm_split(all, color, place, &part);
    return part;
  }

  // Which of the parts of [0, size) has `at`.
  static int owner(std::int64_t size, int parts, std::int64_t at) {
    int part = 0;
    while (partition(size, parts, part).end <= at) ++part;
    return part;
  }

  // One product for all panels of a width.
  PackedProduct<>* product_of(const Problem& p, std::int64_t k) {
    if (m_ == 0 || n_ == 0) return nullptr;
    const Problem local{
        .m = m_, .n = n_, .k = k, .transpose_a = p.transpose_a, .transpose_b = p.transpose_b};
    return &products_.try_emplace(k, local, 1, PackedProduct<>::Use::adds).first->second;
  }

  int i_, j_;           // this rank's row and column of the grid
  std::int64_t m_, n_;  // of its block of C
  OwnedCommunicator row_, column_;
  PanelsOf a_, b_;
  std::map<std::int64_t, PackedProduct<>> products_;  // by width
  std::vector<Step> steps_;
};

}  // namespace stepladder::matmul::inline STEPLADDER_ISA

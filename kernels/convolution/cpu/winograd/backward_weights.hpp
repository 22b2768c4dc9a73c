// backward_weights by Winograd's method: dw is the correlation of x with dy. A tile of dy takes the
// place of the filter, and the output transform gives the taps of the kernel. Per block of tiles:
//
//   x   -> transformed tiles  [positions, tiles, in channels]
//   dy  -> transformed tiles  [positions, tiles, panel]
//          accumulators      [positions, in channels, panel]    += one product per position
//
// A panel has as many output channels as the register tile has columns. Each thread accumulates its
// own images. At the end the threads' partial results are added and combined into dw.
#pragma once

#include <algorithm>
#include <vector>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/partition.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/convolution/cpu/threaded_convolution.hpp"
#include "kernels/convolution/cpu/winograd/gradient_tiles.hpp"
#include "kernels/convolution/cpu/winograd/tiles.hpp"

namespace stepladder::convolution::inline STEPLADDER_ISA {

template <int pairs, int kernel>
class WinogradBackwardWeights final : public ThreadedConvolution {
 public:
  WinogradBackwardWeights(const Problem& problem, int threads)
      : p_(problem),
        threads_(threads),
        panels_(ceil_div(p_.group_out(), panel)),
        partial_size_(p_.group_in() * panel),
        grid_(p_.batch, ceil_div(p_.out_h(), outputs), ceil_div(p_.out_w(), outputs),
              p_.group_in() * p_.group_out(), threads) {
    for (int thread = 0; thread < threads; ++thread) workspaces_.emplace_back(*this);
  }

  void run_phase(int phase, int thread, const Operands& operands) override {
    if (phase == 0)
      accumulate(thread, operands);
    else
      combine(thread, operands.w);
  }

 private:
  using Source = WinogradSource<pairs>;
  using Gradient = WinogradGradientTiles<pairs, kernel>;
  using Gemm = typename Gradient::Gemm;
  static constexpr std::int64_t lanes = Gradient::lanes, panel = Gradient::panel;
  static constexpr std::int64_t positions = Gradient::positions, outputs = Gradient::outputs;

  struct Workspace {
    explicit Workspace(const WinogradBackwardWeights& g)
        : source({.channels = g.p_.group_in(),
                  .height = g.p_.height,
                  .width = g.p_.width,
                  .top = -g.p_.pad_h,
                  .left = -g.p_.pad_w},
                 g.grid_, outputs),
          tiles(panels_of_b(source.tiles_size())),
          gradient(g.p_, g.grid_),
          partials(aligned_array<float>(g.p_.groups * g.panels_ * positions * g.partial_size_)) {}

    Source source;
    AlignedArray<float> tiles;
    Gradient gradient;
    AlignedArray<float> partials;  // [groups, panels, positions, in channels, panel]
  };

  void accumulate(int thread, const Operands& operands) {
    Workspace& work = workspaces_[static_cast<std::size_t>(thread)];
    const std::int64_t x_image = p_.x_count() / p_.batch, y_image = p_.y_count() / p_.batch;
    const Range part = partition(grid_.blocks(), threads_, thread);
    if (part.begin == part.end)
      std::fill_n(work.partials.get(), p_.groups * panels_ * positions * partial_size_, 0.0F);
    for (std::int64_t group = 0; group < p_.groups; ++group)
      for (std::int64_t item = part.begin; item < part.end; ++item) {
        const TileGrid::Block block = grid_.block(item);
        const std::int64_t image_group = block.first_image * p_.groups + group;
        work.source.transform(operands.x + image_group * (x_image / p_.groups), x_image, block,
                              p_.group_in(), work.tiles.get());
        for (std::int64_t i = 0; i < panels_; ++i) {
          work.gradient.transform(operands.y + image_group * (y_image / p_.groups), block, i);
          multiply(work, block,
                   work.partials.get() + (group * panels_ + i) * positions * partial_size_,
                   item > part.begin);
        }
      }
  }

  // partial[position] (+)= tiles[position]ᵀ · gradients[position]
  void multiply(Workspace& work, const TileGrid::Block& block, float* partial, bool add) const {
    const std::int64_t tiles = block.images * block.rows * grid_.columns();
    const std::int64_t row_tiles = ceil_div(p_.group_in(), Gemm::rows);
    for (std::int64_t position = 0; position < positions; ++position)
      for (std::int64_t i = 0; i < row_tiles; ++i) {
        const Range rows = partition(p_.group_in(), row_tiles, i);
        Gemm::multiply_strided(tiles,
                               work.tiles.get() + position * work.source.pitch() + rows.begin, 1,
                               work.source.row(), work.gradient.matrix(position), panel,
                               partial + position * partial_size_ + rows.begin * panel, panel,
                               rows.end - rows.begin, panel, add);
      }
  }

  // Computes one thread's part of dw from the partial results of all threads.
  void combine(int thread, float* dw) const {
    alignas(cache_line) float products[positions * lanes];
    const Range part = partition(p_.groups * panels_ * p_.group_in(), threads_, thread);
    for (std::int64_t item = part.begin; item < part.end; ++item) {
      const std::int64_t c = item % p_.group_in(), block = item / p_.group_in();
      const std::int64_t first = block % panels_ * panel;
      for (std::int64_t v = 0; v < panel && first + v < p_.group_out(); v += lanes) {
        for (std::int64_t position = 0; position < positions; ++position)
          add_partials((block * positions + position) * partial_size_ + c * panel + v,
                       products + position * lanes);
        Gradient::combine(p_, products, lanes, block / panels_ * p_.group_out() + first + v, c,
                          std::min(lanes, p_.group_out() - first - v), dw);
      }
    }
  }

  void add_partials(std::int64_t at, float* products) const {
    Vector sum = Vector::load_aligned(workspaces_[0].partials.get() + at);
    for (std::size_t thread = 1; thread < workspaces_.size(); ++thread)
      sum += Vector::load_aligned(workspaces_[thread].partials.get() + at);
    sum.store_aligned(products);
  }

  Problem p_;
  int threads_;
  std::int64_t panels_, partial_size_;  // floats of one position's partial results
  TileGrid grid_;
  std::vector<Workspace> workspaces_;
};

}  // namespace stepladder::convolution::inline STEPLADDER_ISA

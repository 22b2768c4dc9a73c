// backward_weights by Winograd's method: dw is the correlation of x with dy, so a tile of dy takes
// the filter's place and the kernel's taps are what is combined. Per block of tiles:
//
//   x   -> transformed tiles  [positions, tiles, in channels]
//   dy  -> transformed tiles  [positions, tiles, panel]           a product per position, added to
//          sums               [positions, in channels, panel]
//
// A panel is as many output channels as the tile of the matrix product has columns. Each thread sums
// over its own images; afterwards the threads' sums are added and combined into dw, once.
#pragma once

#include <algorithm>
#include <vector>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/convolution/cpu/steps.hpp"
#include "kernels/convolution/cpu/winograd/gradient_tiles.hpp"
#include "kernels/convolution/cpu/winograd/tiles.hpp"

namespace stepladder::convolution::inline STEPLADDER_ISA {

template <int pairs, int kernel>
class WinogradWeightGradient final : public Steps {
 public:
  WinogradWeightGradient(const Problem& problem, int threads)
      : p_(problem),
        threads_(threads),
        panels_((p_.group_out() + panel - 1) / panel),
        sums_size_(p_.group_in() * panel),
        grid_(p_.batch, p_.out_h(), p_.out_w(), outputs, p_.group_in() * p_.group_out(), threads) {
    for (int thread = 0; thread < threads; ++thread) workspaces_.emplace_back(*this);
  }

  void step(int step, int thread, const Operands& operands) override {
    if (step == 0)
      accumulate(thread, operands);
    else
      combine(thread, operands.w);
  }

 private:
  using Source = WinogradSource<pairs>;
  using Gradient = WinogradGradient<pairs, kernel>;
  using Gemm = typename Gradient::Gemm;
  static constexpr std::int64_t lanes = Gradient::lanes, panel = Gradient::panel;
  static constexpr std::int64_t positions = Gradient::positions, outputs = Gradient::outputs;

  struct Workspace {
    explicit Workspace(const WinogradWeightGradient& g)
        : source({.channels = g.p_.group_in(),
                  .height = g.p_.height,
                  .width = g.p_.width,
                  .top = -g.p_.pad_h,
                  .left = -g.p_.pad_w},
                 g.grid_, outputs),
          tiles(aligned_array<float>(static_cast<std::size_t>(source.tiles_size()))),
          gradient(g.p_, g.grid_),
          sums(aligned_array<float>(
              static_cast<std::size_t>(g.p_.groups * g.panels_ * positions * g.sums_size_))) {}

    Source source;
    AlignedArray<float> tiles;
    Gradient gradient;
    AlignedArray<float> sums;  // [groups, panels, positions, in channels, panel]
  };

  void accumulate(int thread, const Operands& operands) {
    Workspace& work = workspaces_[static_cast<std::size_t>(thread)];
    const std::int64_t x_image = p_.x_count() / p_.batch, y_image = p_.y_count() / p_.batch;
    const Share share(grid_.blocks(), threads_, thread);
    if (share.first == share.last)
      std::fill_n(work.sums.get(), p_.groups * panels_ * positions * sums_size_, 0.0F);
    for (std::int64_t group = 0; group < p_.groups; ++group)
      for (std::int64_t item = share.first; item < share.last; ++item) {
        const TileGrid::Block block = grid_.block(item);
        const std::int64_t image_group = block.first_image * p_.groups + group;
        work.source.transform(operands.x + image_group * (x_image / p_.groups), x_image, block,
                              p_.group_in(), work.tiles.get());
        for (std::int64_t i = 0; i < panels_; ++i) {
          work.gradient.transform(operands.y + image_group * (y_image / p_.groups), block, i);
          multiply(work, block, work.sums.get() + (group * panels_ + i) * positions * sums_size_,
                   item > share.first);
        }
      }
  }

  // sums[position] (+)= tiles[position]ᵀ · gradients[position]
  void multiply(Workspace& work, const TileGrid::Block& block, float* sums, bool add) const {
    const std::int64_t tiles = block.images * block.rows * grid_.columns();
    const std::int64_t stripes = (p_.group_in() + Gemm::rows - 1) / Gemm::rows;
    for (std::int64_t position = 0; position < positions; ++position)
      for (std::int64_t i = 0; i < stripes; ++i) {
        const Share stripe(p_.group_in(), stripes, i);
        Gemm::multiply_strided(tiles,
                               work.tiles.get() + position * work.source.pitch() + stripe.first, 1,
                               work.source.row(), work.gradient.matrix(position), panel,
                               sums + position * sums_size_ + stripe.first * panel, panel,
                               stripe.last - stripe.first, panel, add);
      }
  }

  // This thread's share of dw, from the sums of all threads.
  void combine(int thread, float* dw) const {
    alignas(cache_line) float sum[positions * lanes];
    const Share share(p_.groups * panels_ * p_.group_in(), threads_, thread);
    for (std::int64_t item = share.first; item < share.last; ++item) {
      const std::int64_t c = item % p_.group_in(), block = item / p_.group_in();
      const std::int64_t first = block % panels_ * panel;
      for (std::int64_t v = 0; v < panel && first + v < p_.group_out(); v += lanes) {
        for (std::int64_t position = 0; position < positions; ++position)
          add_threads((block * positions + position) * sums_size_ + c * panel + v,
                      sum + position * lanes);
        Gradient::combine(p_, sum, lanes, block / panels_ * p_.group_out() + first + v, c,
                          std::min(lanes, p_.group_out() - first - v), dw);
      }
    }
  }

  void add_threads(std::int64_t at, float* sum) const {
    Vector all = Vector::load_aligned(workspaces_[0].sums.get() + at);
    for (std::size_t thread = 1; thread < workspaces_.size(); ++thread)
      all += Vector::load_aligned(workspaces_[thread].sums.get() + at);
    all.store_aligned(sum);
  }

  Problem p_;
  int threads_;
  std::int64_t panels_, sums_size_;  // floats of one position's sums
  TileGrid grid_;
  std::vector<Workspace> workspaces_;
};

}  // namespace stepladder::convolution::inline STEPLADDER_ISA

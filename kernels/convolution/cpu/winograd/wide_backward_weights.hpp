// backward_weights by Winograd's method where there are more channels than tiles, as in the
// last layers of a network. There the sums, one for each position and pair of channels, outgrow every
// cache. So they are made block by block, and each block is combined into dw while the cache has it:
//
//   x   -> transformed tiles  [chunks, positions, tiles, 48]   of the whole batch, by all threads
//   for each panel of output channels:
//     dy  -> transformed tiles  [positions, tiles, panel]
//     for each chunk of 48 input channels:
//       sums                    [positions, 48, panel]         a product per position
//       dw                                                     their combination
//
// Threads share the blocks, and no sums are left to be added.
#pragma once

#include <algorithm>
#include <vector>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/convolution/cpu/steps.hpp"
#include "kernels/convolution/cpu/winograd/gradient_tiles.hpp"
#include "kernels/convolution/cpu/winograd/tiles.hpp"

namespace stepladder::convolution::inline STEPLADDER_ISA {

template <int pairs, int kernel>
class WinogradWideGradient final : public Steps {
 public:
  // The problem has one group.
  WinogradWideGradient(const Problem& problem, int threads)
      : p_(problem),
        threads_(threads),
        panels_((p_.out_channels + panel - 1) / panel),
        chunks_((p_.in_channels + most_channels - 1) / most_channels),
        grid_(p_.batch, p_.out_h(), p_.out_w(), Gradient::outputs) {
    for (int thread = 0; thread < threads; ++thread) workspaces_.emplace_back(*this);
    tiles_ = aligned_array<float>(
        static_cast<std::size_t>(chunks_ * workspaces_[0].source.tiles_size()));
  }

  void step(int step, int thread, const Operands& operands) override {
    Workspace& work = workspaces_[static_cast<std::size_t>(thread)];
    const TileGrid::Block batch = grid_.block(0);
    if (step == 0) {
      const Share share(chunks_, threads_, thread);
      for (std::int64_t chunk = share.first; chunk < share.last; ++chunk) {
        const Share channels(p_.in_channels, chunks_, chunk);
        work.source.transform(operands.x + channels.first * p_.height * p_.width,
                              p_.x_count() / p_.batch, batch, channels.last - channels.first,
                              tiles_.get() + chunk * work.source.tiles_size());
      }
      return;
    }
    const Share share(panels_ * chunks_, threads_, thread);
    for (std::int64_t item = share.first; item < share.last; ++item) {
      const std::int64_t index = item / chunks_;
      if (item == share.first || item % chunks_ == 0)
        work.gradient.transform(operands.y, batch, index);
      const Share channels(p_.in_channels, chunks_, item % chunks_);
      multiply(work, tiles_.get() + item % chunks_ * work.source.tiles_size(),
               channels.last - channels.first);
      combine(work, channels, index * panel, operands.w);
    }
  }

 private:
  using Gradient = WinogradGradient<pairs, kernel>;
  using Source = WinogradSource<pairs>;
  using Gemm = typename Gradient::Gemm;
  static constexpr std::int64_t lanes = Gradient::lanes, panel = Gradient::panel;
  static constexpr std::int64_t positions = Gradient::positions;
  static constexpr std::int64_t most_channels = 48;
  // A line more than the sums need, or all positions would compete for one set of the cache.
  static constexpr std::int64_t pitch = most_channels * panel + lanes;

  struct Workspace {
    explicit Workspace(const WinogradWideGradient& g)
        : source({.channels = most_channels,
                  .height = g.p_.height,
                  .width = g.p_.width,
                  .top = -g.p_.pad_h,
                  .left = -g.p_.pad_w},
                 g.grid_, Gradient::outputs),
          gradient(g.p_, g.grid_),
          sums(aligned_array<float>(static_cast<std::size_t>(positions * pitch))) {}

    Source source;
    Gradient gradient;
    AlignedArray<float> sums;  // [positions, input channels, panel]
  };

  // sums[position] = tiles[position]ᵀ · gradients[position]
  void multiply(Workspace& work, const float* tiles, std::int64_t count) const {
    const std::int64_t stripes = (count + Gemm::rows - 1) / Gemm::rows;
    for (std::int64_t position = 0; position < positions; ++position)
      for (std::int64_t i = 0; i < stripes; ++i) {
        const Share stripe(count, stripes, i);
        Gemm::multiply_strided(grid_.tiles(), tiles + position * work.source.pitch() + stripe.first,
                               1, work.source.row(), work.gradient.matrix(position), panel,
                               work.sums.get() + position * pitch + stripe.first * panel, panel,
                               stripe.last - stripe.first, panel, false);
      }
  }

  void combine(const Workspace& work, const Share& channels, std::int64_t first, float* dw) const {
    for (std::int64_t c = channels.first; c < channels.last; ++c)
      for (std::int64_t v = 0; v < panel && first + v < p_.out_channels; v += lanes)
        Gradient::combine(p_, work.sums.get() + (c - channels.first) * panel + v, pitch, first + v,
                          c, std::min(lanes, p_.out_channels - first - v), dw);
  }

  Problem p_;
  int threads_;
  std::int64_t panels_, chunks_;  // of output channels, of input channels
  TileGrid grid_;
  AlignedArray<float> tiles_;  // [chunks, positions, tiles, input channels], of x
  std::vector<Workspace> workspaces_;
};

}  // namespace stepladder::convolution::inline STEPLADDER_ISA

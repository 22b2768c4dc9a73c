// backward_weights by Winograd's method for more channels than tiles, as in the last layers of a
// network. There the accumulators, one per position and pair of channels, exceed every cache. They
// are computed block by block, and each block is combined into dw while it is in the cache:
//
//   x   -> transformed tiles  [chunks, positions, tiles, 48]   of the whole batch, by all threads
//   for each panel of output channels:
//     dy  -> transformed tiles  [positions, tiles, panel]
//     for each chunk of 48 input channels:
//       products                [positions, 48, panel]         one product per position
//       dw                                                     combined from the products
//
// Threads divide the blocks, so there are no partial results to add.
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
class WinogradManyChannelBackwardWeights final : public ThreadedConvolution {
 public:
  // problem.groups must be 1.
  WinogradManyChannelBackwardWeights(const Problem& problem, int threads)
      : p_(problem),
        threads_(threads),
        panels_(ceil_div(p_.out_channels, panel)),
        chunks_(ceil_div(p_.in_channels, max_channels)),
        grid_(p_.batch, ceil_div(p_.out_h(), Gradient::outputs),
              ceil_div(p_.out_w(), Gradient::outputs)) {
    for (int thread = 0; thread < threads; ++thread) workspaces_.emplace_back(*this);
    tiles_ = panels_of_b(chunks_ * workspaces_[0].source.tiles_size());
  }

  void run_phase(int phase, int thread, const Operands& operands) override {
    Workspace& work = workspaces_[static_cast<std::size_t>(thread)];
    const TileGrid::Block batch = grid_.block(0);
    if (phase == 0) {
      const Range part = partition(chunks_, threads_, thread);
      for (std::int64_t chunk = part.begin; chunk < part.end; ++chunk) {
        const Range channels = partition(p_.in_channels, chunks_, chunk);
        work.source.transform(operands.x + channels.begin * p_.height * p_.width,
                              p_.x_count() / p_.batch, batch, channels.end - channels.begin,
                              tiles_.get() + chunk * work.source.tiles_size());
      }
      return;
    }
    const Range part = partition(panels_ * chunks_, threads_, thread);
    for (std::int64_t item = part.begin; item < part.end; ++item) {
      const std::int64_t index = item / chunks_;
      if (item == part.begin || item % chunks_ == 0)
        work.gradient.transform(operands.y, batch, index);
      const Range channels = partition(p_.in_channels, chunks_, item % chunks_);
      multiply(work, tiles_.get() + item % chunks_ * work.source.tiles_size(),
               channels.end - channels.begin);
      combine(work, channels, index * panel, operands.w);
    }
  }

 private:
  using Gradient = WinogradGradientTiles<pairs, kernel>;
  using Source = WinogradSource<pairs>;
  using Gemm = typename Gradient::Gemm;
  static constexpr std::int64_t lanes = Gradient::lanes, panel = Gradient::panel;
  static constexpr std::int64_t positions = Gradient::positions;
  static constexpr std::int64_t max_channels = 48;
  // One cache line more than the products need: otherwise all positions could map to the same cache
  // set.
  static constexpr std::int64_t pitch = max_channels * panel + lanes;

  struct Workspace {
    explicit Workspace(const WinogradManyChannelBackwardWeights& g)
        : source({.channels = max_channels,
                  .height = g.p_.height,
                  .width = g.p_.width,
                  .top = -g.p_.pad_h,
                  .left = -g.p_.pad_w},
                 g.grid_, Gradient::outputs),
          gradient(g.p_, g.grid_),
          products(aligned_array<float>(positions * pitch)) {}

    Source source;
    Gradient gradient;
    AlignedArray<float> products;  // [positions, input channels, panel]
  };

  // products[position] = tiles[position]ᵀ · gradients[position]
  void multiply(Workspace& work, const float* tiles, std::int64_t count) const {
    const std::int64_t row_tiles = ceil_div(count, Gemm::rows);
    for (std::int64_t position = 0; position < positions; ++position)
      for (std::int64_t i = 0; i < row_tiles; ++i) {
        const Range rows = partition(count, row_tiles, i);
        Gemm::multiply_strided(grid_.tiles(), tiles + position * work.source.pitch() + rows.begin,
                               1, work.source.row(), work.gradient.matrix(position), panel,
                               work.products.get() + position * pitch + rows.begin * panel, panel,
                               rows.end - rows.begin, panel, false);
      }
  }

  void combine(const Workspace& work, const Range& channels, std::int64_t first, float* dw) const {
    for (std::int64_t c = channels.begin; c < channels.end; ++c)
      for (std::int64_t v = 0; v < panel && first + v < p_.out_channels; v += lanes)
        Gradient::combine(p_, work.products.get() + (c - channels.begin) * panel + v, pitch,
                          first + v, c, std::min(lanes, p_.out_channels - first - v), dw);
  }

  Problem p_;
  int threads_;
  std::int64_t panels_, chunks_;  // of output and input channels
  TileGrid grid_;
  AlignedArray<float> tiles_;  // [chunks, positions, tiles, input channels], of x
  std::vector<Workspace> workspaces_;
};

}  // namespace stepladder::convolution::inline STEPLADDER_ISA

// backward_data of a 1 x 1 kernel on few pixels: the matrix product the other way round, so that the
// weights, which are most of what is read, can be taken along their rows.
//
//   dxᵀ [pixels, input channels] = dyᵀ [pixels, output channels] · w [output channels, input channels]
//
//   dy block   [panels, depth, MR]   gathered from the connected pixels: second-level cache
//   w panel    [depth, NR]           packed while the first tile is computed
//   dxᵀ tile   [MR, NR]              registers, added up in a block [pixels, input channels], which
//                                    is transposed into dx in the end
#pragma once

#include <algorithm>
#include <vector>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/gemm_tile.hpp"
#include "kernels/common/cpu/transpose.hpp"
#include "kernels/convolution/cpu/pointwise/connected_pixels.hpp"
#include "kernels/convolution/cpu/pointwise/copy_run.hpp"
#include "kernels/convolution/cpu/steps.hpp"

namespace stepladder::convolution::inline STEPLADDER_ISA {

class PointwiseDataGradient final : public Steps {
 public:
  PointwiseDataGradient(const Problem& problem, int threads)
      : p_(problem),
        threads_(threads),
        pixels_(problem),
        depths_((p_.group_out() + most_depth - 1) / most_depth),
        depth_((p_.group_out() + depths_ - 1) / depths_) {
    // Whole panels of pixels, as many blocks for each thread.
    panels_ = (pixels_.of_batch() + Tile::rows - 1) / Tile::rows;
    const std::int64_t most =
        std::max<std::int64_t>(1, block_floats / depth_ / Tile::rows) * threads;
    blocks_ = (panels_ + most - 1) / most * threads;
    block_panels_ = blocks_ > 0 ? (panels_ + blocks_ - 1) / blocks_ : 0;
    workspaces_.resize(static_cast<std::size_t>(threads));
    for (Workspace& workspace : workspaces_) {
      const std::int64_t block = block_panels_ * Tile::rows;
      workspace.dy = aligned_array<float>(static_cast<std::size_t>(block * depth_));
      workspace.w = aligned_array<float>(static_cast<std::size_t>(depth_ * Tile::columns));
      const std::int64_t columns = (p_.group_in() + Tile::columns - 1) / Tile::columns;
      workspace.dx =
          aligned_array<float>(static_cast<std::size_t>(columns * block * Tile::columns));
      workspace.turned = aligned_array<float>(static_cast<std::size_t>(block * Tile::columns));
      workspace.x_runs.reserve(static_cast<std::size_t>(block));
      workspace.y_runs.reserve(static_cast<std::size_t>(block));
    }
  }

  void step(int step, int thread, const Operands& operands) override {
    if (step == 0) {
      if (pixels_.all_of_x()) return;
      const Share share(p_.x_count(), threads_, thread);
      std::fill(operands.x + share.first, operands.x + share.last, 0.0F);
      return;
    }
    Workspace& workspace = workspaces_[static_cast<std::size_t>(thread)];
    const Share share(blocks_, threads_, thread);
    for (std::int64_t group = 0; group < p_.groups; ++group)
      for (std::int64_t block = share.first; block < share.last; ++block) {
        const Share panels(panels_, blocks_, block);
        const Range pixels{panels.first * Tile::rows,
                           std::min(pixels_.of_batch(), panels.last * Tile::rows)};
        if (pixels.first < pixels.last) multiply(group, pixels, operands, workspace);
      }
  }

 private:
  using Tile = GemmTile<>;
  static constexpr std::int64_t most_depth = 384;        // output channels at a time
  static constexpr std::int64_t block_floats = 1 << 16;  // of dy: a quarter of a MiB

  struct Workspace {
    AlignedArray<float> dy;      // [panels, depth, MR]
    AlignedArray<float> w;       // [depth, NR]
    AlignedArray<float> dx;      // [column panels, pixels, NR]
    AlignedArray<float> turned;  // [NR, pixels], for a stride
    std::vector<ConnectedPixels::Run> x_runs, y_runs;
  };

  void multiply(std::int64_t group, const Range& pixels, const Operands& operands,
                Workspace& workspace) const {
    const std::int64_t in = p_.group_in(), out = p_.group_out(), plane = p_.out_h() * p_.out_w();
    const std::int64_t count = pixels.last - pixels.first;
    pixels_.find_runs(pixels.first, count, Tile::rows, ConnectedPixels::In::y, workspace.y_runs);
    pixels_.find_runs(pixels.first, count, count, ConnectedPixels::In::x, workspace.x_runs);
    for (std::int64_t d = 0; d < depths_; ++d) {
      const Share depth(out, depths_, d);
      gather(operands.y + (group * out + depth.first) * plane, plane, depth.last - depth.first,
             workspace);
      for (std::int64_t j = 0; j < in; j += Tile::columns) {
        const std::int64_t width = std::min(Tile::columns, in - j);
        float* dx = workspace.dx.get() + j * block_panels_ * Tile::rows;
        multiply_column(operands.w + (group * out + depth.first) * in + j, depth.last - depth.first,
                        count, width, dx, d > 0, workspace);
        if (d + 1 == depths_)
          write(dx, count, width, operands.x + (group * in + j) * p_.height * p_.width, workspace);
      }
    }
  }

  // One column of tiles, dx [pixels, NR]; the first packs the weights for the others.
  void multiply_column(const float* w, std::int64_t depth, std::int64_t pixels, std::int64_t width,
                       float* dx, bool accumulate, Workspace& workspace) const {
    for (std::int64_t i = 0; i < pixels; i += Tile::rows, dx += Tile::rows * Tile::columns) {
      const float* a = workspace.dy.get() + i * depth;
      const std::int64_t rows = std::min(Tile::rows, pixels - i);
      if (i == 0)
        Tile::multiply_packing(depth, a, 1, Tile::rows, w, p_.group_in(), workspace.w.get(), dx,
                               Tile::columns, rows, width, accumulate);
      else
        Tile::multiply(depth, a, workspace.w.get(), dx, Tile::columns, rows, width, accumulate);
    }
  }

  // dy of the block's pixels, which are cut into panels.
  void gather(const float* dy, std::int64_t plane, std::int64_t depth, Workspace& workspace) const {
    for (const ConnectedPixels::Run& run : workspace.y_runs) {
      const float* from = dy + run.y;
      float* to =
          workspace.dy.get() + run.first / Tile::rows * Tile::rows * depth + run.first % Tile::rows;
      if (run.count == Tile::rows)
        for (std::int64_t l = 0; l < depth; ++l)
          std::copy_n(from + l * plane, Tile::rows, to + l * Tile::rows);
      else
        for (std::int64_t l = 0; l < depth; ++l)
          spread_run(from + l * plane, run.count, 1, to + l * Tile::rows);
    }
  }

  // `width` channels of the block, [pixels, NR], to where dx has them.
  void write(const float* from, std::int64_t pixels, std::int64_t width, float* dx,
             Workspace& workspace) const {
    const std::int64_t plane = p_.height * p_.width, step = pixels_.x_step();
    if (step == 1) {
      for (const ConnectedPixels::Run& run : workspace.x_runs)
        transpose(from + run.first * Tile::columns, Tile::columns, dx + run.x, plane,
                        run.count, width);
      return;
    }
    transpose(from, Tile::columns, workspace.turned.get(), pixels, pixels, width);
    for (std::int64_t channel = 0; channel < width; ++channel)
      for (const ConnectedPixels::Run& run : workspace.x_runs)
        spread_run(workspace.turned.get() + channel * pixels + run.first, run.count, step,
                         dx + channel * plane + run.x);
  }

  Problem p_;
  int threads_;
  ConnectedPixels pixels_;
  std::int64_t depths_, depth_;  // output channels are taken in so many parts, of at most so many
  std::int64_t panels_ = 0;      // of MR connected pixels
  std::int64_t blocks_ = 0, block_panels_ = 0;  // of so many panels at most
  std::vector<Workspace> workspaces_;
};

}  // namespace stepladder::convolution::inline STEPLADDER_ISA

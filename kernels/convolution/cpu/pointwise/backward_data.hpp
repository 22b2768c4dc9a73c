// backward_data of a 1 x 1 kernel on few pixels, as the transposed matrix product: the weights,
// which are most of the data, are read along their rows.
//
//   dxᵀ [pixels, group_in] = dyᵀ [pixels, group_out] · w [group_out, group_in]
//
//   block of dy   [panels, KC, MR]   gathered, in L2
//   panel of w    [KC, NR]           packed while the first tile is computed
//   tile of dxᵀ   [MR, NR]           registers, accumulated in a block [pixels, group_in] that is
//                                    transposed into dx at the end
#pragma once

#include <algorithm>
#include <vector>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/gemm_tile.hpp"
#include "kernels/common/cpu/partition.hpp"
#include "kernels/common/cpu/transpose.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/convolution/cpu/pointwise/pixel_pairs.hpp"
#include "kernels/convolution/cpu/strided_copy.hpp"
#include "kernels/convolution/cpu/threaded_convolution.hpp"

namespace stepladder::convolution::inline STEPLADDER_ISA {

class PointwiseBackwardData final : public ThreadedConvolution {
 public:
  PointwiseBackwardData(const Problem& problem, int threads)
      : p_(problem),
        threads_(threads),
        pairs_(problem),
        k_blocks_(ceil_div(p_.group_out(), max_kc)),
        kc_(ceil_div(p_.group_out(), k_blocks_)) {
    // Blocks of whole panels of pixels, equally many per thread.
    panels_ = ceil_div(pairs_.total(), Tile::rows);
    const std::int64_t max_panels =
        std::max<std::int64_t>(1, max_block_floats / kc_ / Tile::rows) * threads;
    blocks_ = ceil_div(panels_, max_panels) * threads;
    block_panels_ = blocks_ > 0 ? ceil_div(panels_, blocks_) : 0;
    workspaces_.resize(static_cast<std::size_t>(threads));
    for (Workspace& workspace : workspaces_) {
      const std::int64_t block = block_panels_ * Tile::rows;
      workspace.dy = aligned_array<float>(block * kc_);
      workspace.w = panels_of_b(kc_ * Tile::columns);
      const std::int64_t columns = ceil_div(p_.group_in(), Tile::columns);
      workspace.dx = aligned_array<float>(columns * block * Tile::columns);
      workspace.dx_transposed = aligned_array<float>(block * Tile::columns);
      workspace.x_segments.reserve(static_cast<std::size_t>(block));
      workspace.y_segments.reserve(static_cast<std::size_t>(block));
    }
  }

  void run_phase(int phase, int thread, const Operands& operands) override {
    if (phase == 0) {
      if (pairs_.cover_x()) return;
      const Range part = partition(p_.x_count(), threads_, thread);
      std::fill(operands.x + part.begin, operands.x + part.end, 0.0F);
      return;
    }
    Workspace& workspace = workspaces_[static_cast<std::size_t>(thread)];
    const Range part = partition(blocks_, threads_, thread);
    for (std::int64_t group = 0; group < p_.groups; ++group)
      for (std::int64_t block = part.begin; block < part.end; ++block) {
        const Range panels = partition(panels_, blocks_, block);
        const Range pixels{panels.begin * Tile::rows,
                           std::min(pairs_.total(), panels.end * Tile::rows)};
        if (pixels.begin < pixels.end) multiply(group, pixels, operands, workspace);
      }
  }

 private:
  using Tile = GemmTile<>;
  static constexpr std::int64_t max_kc = 384;                // output channels of a block
  static constexpr std::int64_t max_block_floats = 1 << 16;  // 256 KiB of dy, for L2

  struct Workspace {
    AlignedArray<float> dy;             // [panels, KC, MR]
    AlignedArray<float> w;              // [KC, NR]
    AlignedArray<float> dx;             // [column panels, pixels, NR]
    AlignedArray<float> dx_transposed;  // [NR, pixels], for a stride
    std::vector<PixelPairs::Segment> x_segments, y_segments;
  };

  void multiply(std::int64_t group, const Range& pixels, const Operands& operands,
                Workspace& workspace) const {
    const std::int64_t in = p_.group_in(), out = p_.group_out(), plane = p_.out_h() * p_.out_w();
    const std::int64_t count = pixels.end - pixels.begin;
    pairs_.find_segments(pixels.begin, count, Tile::rows, PixelPairs::Operand::y,
                         workspace.y_segments);
    pairs_.find_segments(pixels.begin, count, count, PixelPairs::Operand::x, workspace.x_segments);
    for (std::int64_t block_index = 0; block_index < k_blocks_; ++block_index) {
      const Range channels = partition(out, k_blocks_, block_index);
      gather(operands.y + (group * out + channels.begin) * plane, plane,
             channels.end - channels.begin, workspace);
      for (std::int64_t j = 0; j < in; j += Tile::columns) {
        const std::int64_t width = std::min(Tile::columns, in - j);
        float* dx = workspace.dx.get() + j * block_panels_ * Tile::rows;
        multiply_column(operands.w + (group * out + channels.begin) * in + j,
                        channels.end - channels.begin, count, width, dx, block_index > 0,
                        workspace);
        if (block_index + 1 == k_blocks_)
          write(dx, count, width, operands.x + (group * in + j) * p_.height * p_.width, workspace);
      }
    }
  }

  // One column of tiles, dx [pixels, NR]; the first tile packs the weights for the others.
  void multiply_column(const float* w, std::int64_t k, std::int64_t pixels, std::int64_t width,
                       float* dx, bool accumulate, Workspace& workspace) const {
    for (std::int64_t i = 0; i < pixels; i += Tile::rows, dx += Tile::rows * Tile::columns) {
      const float* a = workspace.dy.get() + i * k;
      const std::int64_t rows = std::min(Tile::rows, pixels - i);
      if (i == 0)
        Tile::multiply_packing(k, a, 1, Tile::rows, w, p_.group_in(), workspace.w.get(), dx,
                               Tile::columns, rows, width, accumulate);
      else
        Tile::multiply(k, a, workspace.w.get(), dx, Tile::columns, rows, width, accumulate);
    }
  }

  // Gathers dy of the block's pixels into panels.
  void gather(const float* dy, std::int64_t plane, std::int64_t k, Workspace& workspace) const {
    for (const PixelPairs::Segment& segment : workspace.y_segments) {
      const float* from = dy + segment.y;
      float* to = workspace.dy.get() + segment.first / Tile::rows * Tile::rows * k +
                  segment.first % Tile::rows;
      if (segment.count == Tile::rows)
        for (std::int64_t l = 0; l < k; ++l)
          std::copy_n(from + l * plane, Tile::rows, to + l * Tile::rows);
      else
        for (std::int64_t l = 0; l < k; ++l)
          scatter_strided(from + l * plane, segment.count, 1, to + l * Tile::rows);
    }
  }

  // Writes `width` channels of the block [pixels, NR] to dx.
  void write(const float* from, std::int64_t pixels, std::int64_t width, float* dx,
             Workspace& workspace) const {
    const std::int64_t plane = p_.height * p_.width, step = pairs_.x_step();
    if (step == 1) {
      for (const PixelPairs::Segment& segment : workspace.x_segments)
        transpose(from + segment.first * Tile::columns, Tile::columns, dx + segment.x, plane,
                  segment.count, width);
      return;
    }
    transpose(from, Tile::columns, workspace.dx_transposed.get(), pixels, pixels, width);
    for (std::int64_t channel = 0; channel < width; ++channel)
      for (const PixelPairs::Segment& segment : workspace.x_segments)
        scatter_strided(workspace.dx_transposed.get() + channel * pixels + segment.first,
                        segment.count, step, dx + channel * plane + segment.x);
  }

  Problem p_;
  int threads_;
  PixelPairs pairs_;
  std::int64_t k_blocks_, kc_;                  // blocks of output channels, and their largest size
  std::int64_t panels_ = 0;                     // of MR pixel pairs
  std::int64_t blocks_ = 0, block_panels_ = 0;  // blocks of panels, and their largest size
  std::vector<Workspace> workspaces_;
};

}  // namespace stepladder::convolution::inline STEPLADDER_ISA

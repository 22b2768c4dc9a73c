// backward_weights of a 1 x 1 kernel, as the matrix product that it is:
//
//   dw [output channels, input channels] = dy [output channels, pixels] · x [input channels, pixels]ᵀ
//
//   dy block   [384, depth]   read where it lies while the pixels of a depth are neighbours, as in
//                             an image without stride; gathered where not
//   x panel    [depth, NR]    input channels of the connected pixels, transposed
//   dw tile    [MR, NR]       registers
//
// Threads share the longer side of dw, so that no sums are left to be added.
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

class PointwiseWeightGradient final : public Steps {
 public:
  PointwiseWeightGradient(const Problem& problem, int threads)
      : p_(problem),
        threads_(threads),
        pixels_(problem),
        x_plane_(p_.height * p_.width),
        y_plane_(p_.out_h() * p_.out_w()) {
    // Whole images, some together, or one in equal parts.
    const std::int64_t image = std::max<std::int64_t>(1, pixels_.of_image());
    parts_ = (image + most_depth - 1) / most_depth;
    depth_ = parts_ > 1 ? (image + parts_ - 1) / parts_ : most_depth / image * image;
    blocks_ = parts_ > 1 ? p_.batch * parts_ : (pixels_.of_batch() + depth_ - 1) / depth_;
    workspaces_.resize(static_cast<std::size_t>(threads));
    for (Workspace& workspace : workspaces_) {
      workspace.dy = aligned_array<float>(static_cast<std::size_t>(most_rows * depth_ + lanes));
      workspace.x = aligned_array<float>(static_cast<std::size_t>(Tile::columns * depth_ + lanes));
      workspace.panel = aligned_array<float>(static_cast<std::size_t>(depth_ * Tile::columns));
      workspace.x_runs.reserve(static_cast<std::size_t>(depth_));
      workspace.y_runs.reserve(static_cast<std::size_t>(depth_));
    }
  }

  void step(int step, int thread, const Operands& operands) override {
    if (step > 0) return;
    const std::int64_t out = p_.group_out(), in = p_.group_in();
    Range rows{0, out}, columns{0, in};
    if (out >= in) {
      const Share share((out + Tile::rows - 1) / Tile::rows, threads_, thread);
      rows = {share.first * Tile::rows, std::min(out, share.last * Tile::rows)};
    } else {
      const Share share((in + lanes - 1) / lanes, threads_, thread);
      columns = {share.first * lanes, std::min(in, share.last * lanes)};
    }
    if (rows.first >= rows.last || columns.first >= columns.last) return;
    for (std::int64_t group = 0; group < p_.groups; ++group)
      multiply(group, rows, columns, operands, workspaces_[static_cast<std::size_t>(thread)]);
  }

 private:
  using Tile = GemmTile<>;
  static constexpr std::int64_t lanes = Tile::lanes;
  static constexpr std::int64_t most_depth = 512;  // pixels at a time
  static constexpr std::int64_t most_rows = 384;   // output channels at a time

  struct Workspace {
    AlignedArray<float> dy;     // [rows, depth]
    AlignedArray<float> x;      // [NR, depth]
    AlignedArray<float> panel;  // [depth, NR]
    std::vector<ConnectedPixels::Run> x_runs, y_runs;
  };

  // Of one group: the rows and columns of dw that fall to a thread.
  void multiply(std::int64_t group, const Range& rows, const Range& columns,
                const Operands& operands, Workspace& workspace) const {
    const float* x = operands.x + group * p_.group_in() * x_plane_;
    const float* dy = operands.y + group * p_.group_out() * y_plane_;
    float* dw = operands.w + group * p_.group_out() * p_.group_in();
    if (pixels_.of_batch() == 0)
      for (std::int64_t row = rows.first; row < rows.last; ++row)
        std::fill(dw + row * p_.group_in() + columns.first, dw + row * p_.group_in() + columns.last,
                  0.0F);
    for (std::int64_t block = 0; block < blocks_; ++block) {
      const Range pixels = pixels_of(block);
      const std::int64_t depth = pixels.last - pixels.first;
      pixels_.find_runs(pixels.first, depth, depth, ConnectedPixels::In::x, workspace.x_runs);
      pixels_.find_runs(pixels.first, depth, depth, ConnectedPixels::In::y, workspace.y_runs);
      const std::int64_t row_blocks = (rows.last - rows.first + most_rows - 1) / most_rows;
      for (std::int64_t b = 0; b < row_blocks; ++b) {
        const Share block_rows(rows.last - rows.first, row_blocks, b);
        const std::int64_t i = rows.first + block_rows.first;
        const std::int64_t height = block_rows.last - block_rows.first;
        const float* a = dy + i * y_plane_ + workspace.y_runs.front().y;
        std::int64_t a_row = y_plane_;
        if (workspace.y_runs.size() > 1) {
          gather_dy(dy + i * y_plane_, height, workspace);
          a = workspace.dy.get();
          a_row = depth_;
        }
        for (std::int64_t j = columns.first; j < columns.last; j += Tile::columns) {
          const std::int64_t width = std::min(Tile::columns, columns.last - j);
          transpose_x(x + j * x_plane_, width, depth, workspace);
          const std::int64_t tiles = (height + Tile::rows - 1) / Tile::rows;
          for (std::int64_t t = 0; t < tiles; ++t) {  // of heights as equal as can be
            const Share share(height, tiles, t);
            Tile::multiply_strided(depth, a + share.first * a_row, a_row, 1, workspace.panel.get(),
                                   Tile::columns, dw + (i + share.first) * p_.group_in() + j,
                                   p_.group_in(), share.last - share.first, width, block > 0);
          }
        }
      }
    }
  }

  Range pixels_of(std::int64_t block) const {
    if (parts_ == 1) return {block * depth_, std::min(pixels_.of_batch(), (block + 1) * depth_)};
    const Share part(pixels_.of_image(), parts_, block % parts_);
    const std::int64_t image = block / parts_ * pixels_.of_image();
    return {image + part.first, image + part.last};
  }

  // Into rows [depth], whose pitch is depth_.
  void gather_dy(const float* dy, std::int64_t rows, Workspace& workspace) const {
    for (std::int64_t i = 0; i < rows; ++i)
      for (const ConnectedPixels::Run& run : workspace.y_runs)
        copy_run(dy + i * y_plane_ + run.y, 1, run.count,
                       workspace.dy.get() + i * depth_ + run.first);
  }

  void transpose_x(const float* x, std::int64_t channels, std::int64_t depth,
                   Workspace& workspace) const {
    const std::int64_t step = pixels_.x_step();
    const float* rows = x + workspace.x_runs.front().x;
    std::int64_t pitch = x_plane_;
    if (workspace.x_runs.size() > 1 || step > 1) {
      for (std::int64_t i = 0; i < channels; ++i)
        for (const ConnectedPixels::Run& run : workspace.x_runs)
          copy_run(x + i * x_plane_ + run.x, step, run.count,
                         workspace.x.get() + i * depth_ + run.first);
      rows = workspace.x.get();
      pitch = depth_;
    }
    transpose(rows, pitch, workspace.panel.get(), Tile::columns, channels, depth);
  }

  Problem p_;
  int threads_;
  ConnectedPixels pixels_;
  std::int64_t x_plane_, y_plane_;
  std::int64_t parts_;   // that an image is cut into
  std::int64_t depth_;   // most pixels at a time
  std::int64_t blocks_;  // of pixels, in the batch
  std::vector<Workspace> workspaces_;
};

}  // namespace stepladder::convolution::inline STEPLADDER_ISA

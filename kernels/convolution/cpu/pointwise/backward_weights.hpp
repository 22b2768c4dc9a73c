// backward_weights of a 1 x 1 kernel, as a matrix product:
//
//   dw [group_out, group_in] = dy [group_out, pixels] · xᵀ [pixels, group_in]
//
//   block of dy   [384, KC]   read in place if the pixels are contiguous, as in an image without
//                             stride, else gathered
//   panel of x    [KC, NR]    input channels of the pixels, transposed
//   tile of dw    [MR, NR]    registers
//
// Threads divide the longer side of dw, so there are no partial sums to add.
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

class PointwiseBackwardWeights final : public ThreadedConvolution {
 public:
  PointwiseBackwardWeights(const Problem& problem, int threads)
      : p_(problem),
        threads_(threads),
        pairs_(problem),
        x_plane_(p_.height * p_.width),
        y_plane_(p_.out_h() * p_.out_w()) {
    // A block is some whole images, or an equal part of one.
    const std::int64_t image = std::max<std::int64_t>(1, pairs_.per_image());
    image_parts_ = ceil_div(image, max_kc);
    kc_ = image_parts_ > 1 ? ceil_div(image, image_parts_) : max_kc / image * image;
    blocks_ = image_parts_ > 1 ? p_.batch * image_parts_ : ceil_div(pairs_.total(), kc_);
    workspaces_.resize(static_cast<std::size_t>(threads));
    for (Workspace& workspace : workspaces_) {
      workspace.dy = aligned_array<float>(max_mc * kc_ + lanes);
      workspace.x = aligned_array<float>(Tile::columns * kc_ + lanes);
      workspace.panel = panels_of_b(kc_ * Tile::columns);
      workspace.x_segments.reserve(static_cast<std::size_t>(kc_));
      workspace.y_segments.reserve(static_cast<std::size_t>(kc_));
    }
  }

  void run_phase(int phase, int thread, const Operands& operands) override {
    if (phase > 0) return;
    const std::int64_t out = p_.group_out(), in = p_.group_in();
    Range rows{0, out}, columns{0, in};
    if (out >= in) {
      const Range part = partition(ceil_div(out, Tile::rows), threads_, thread);
      rows = {part.begin * Tile::rows, std::min(out, part.end * Tile::rows)};
    } else {
      const Range part = partition(ceil_div(in, lanes), threads_, thread);
      columns = {part.begin * lanes, std::min(in, part.end * lanes)};
    }
    if (rows.begin >= rows.end || columns.begin >= columns.end) return;
    for (std::int64_t group = 0; group < p_.groups; ++group)
      multiply(group, rows, columns, operands, workspaces_[static_cast<std::size_t>(thread)]);
  }

 private:
  using Tile = GemmTile<>;
  static constexpr std::int64_t lanes = Tile::lanes;
  static constexpr std::int64_t max_kc = 512;  // pixels of a block
  static constexpr std::int64_t max_mc = 384;  // output channels of a block

  struct Workspace {
    AlignedArray<float> dy;     // [MC, KC]
    AlignedArray<float> x;      // [NR, KC]
    AlignedArray<float> panel;  // [KC, NR]
    std::vector<PixelPairs::Segment> x_segments, y_segments;
  };

  // Computes `rows` and `columns` of dw of one group.
  void multiply(std::int64_t group, const Range& rows, const Range& columns,
                const Operands& operands, Workspace& workspace) const {
    const float* x = operands.x + group * p_.group_in() * x_plane_;
    const float* dy = operands.y + group * p_.group_out() * y_plane_;
    float* dw = operands.w + group * p_.group_out() * p_.group_in();
    if (pairs_.total() == 0)
      for (std::int64_t row = rows.begin; row < rows.end; ++row)
        std::fill(dw + row * p_.group_in() + columns.begin, dw + row * p_.group_in() + columns.end,
                  0.0F);
    for (std::int64_t block = 0; block < blocks_; ++block) {
      const Range pixels = pixels_of(block);
      const std::int64_t k = pixels.end - pixels.begin;
      pairs_.find_segments(pixels.begin, k, k, PixelPairs::Operand::x, workspace.x_segments);
      pairs_.find_segments(pixels.begin, k, k, PixelPairs::Operand::y, workspace.y_segments);
      const std::int64_t row_blocks = ceil_div(rows.end - rows.begin, max_mc);
      for (std::int64_t b = 0; b < row_blocks; ++b) {
        const Range block_rows = partition(rows.end - rows.begin, row_blocks, b);
        const std::int64_t i = rows.begin + block_rows.begin;
        const std::int64_t height = block_rows.end - block_rows.begin;
        const float* a = dy + i * y_plane_ + workspace.y_segments.front().y;
        std::int64_t a_row = y_plane_;
        if (workspace.y_segments.size() > 1) {
          gather_dy(dy + i * y_plane_, height, workspace);
          a = workspace.dy.get();
          a_row = kc_;
        }
        for (std::int64_t j = columns.begin; j < columns.end; j += Tile::columns) {
          const std::int64_t width = std::min(Tile::columns, columns.end - j);
          transpose_x(x + j * x_plane_, width, k, workspace);
          const std::int64_t tiles = ceil_div(height, Tile::rows);
          for (std::int64_t t = 0; t < tiles; ++t) {  // of nearly equal heights
            const Range tile = partition(height, tiles, t);
            Tile::multiply_strided(k, a + tile.begin * a_row, a_row, 1, workspace.panel.get(),
                                   Tile::columns, dw + (i + tile.begin) * p_.group_in() + j,
                                   p_.group_in(), tile.end - tile.begin, width, block > 0);
          }
        }
      }
    }
  }

  Range pixels_of(std::int64_t block) const {
    if (image_parts_ == 1) return {block * kc_, std::min(pairs_.total(), (block + 1) * kc_)};
    const Range part = partition(pairs_.per_image(), image_parts_, block % image_parts_);
    const std::int64_t image = block / image_parts_ * pairs_.per_image();
    return {image + part.begin, image + part.end};
  }

  // Gathers rows of dy, kc_ apart.
  void gather_dy(const float* dy, std::int64_t rows, Workspace& workspace) const {
    for (std::int64_t i = 0; i < rows; ++i)
      for (const PixelPairs::Segment& segment : workspace.y_segments)
        gather_strided(dy + i * y_plane_ + segment.y, 1, segment.count,
                       workspace.dy.get() + i * kc_ + segment.first);
  }

  void transpose_x(const float* x, std::int64_t channels, std::int64_t k,
                   Workspace& workspace) const {
    const std::int64_t step = pairs_.x_step();
    const float* rows = x + workspace.x_segments.front().x;
    std::int64_t pitch = x_plane_;
    if (workspace.x_segments.size() > 1 || step > 1) {
      for (std::int64_t i = 0; i < channels; ++i)
        for (const PixelPairs::Segment& segment : workspace.x_segments)
          gather_strided(x + i * x_plane_ + segment.x, step, segment.count,
                         workspace.x.get() + i * kc_ + segment.first);
      rows = workspace.x.get();
      pitch = kc_;
    }
    transpose(rows, pitch, workspace.panel.get(), Tile::columns, channels, k);
  }

  Problem p_;
  int threads_;
  PixelPairs pairs_;
  std::int64_t x_plane_, y_plane_;
  std::int64_t image_parts_;  // blocks per image, or 1
  std::int64_t kc_;           // max. pixels of a block
  std::int64_t blocks_;       // in the batch
  std::vector<Workspace> workspaces_;
};

}  // namespace stepladder::convolution::inline STEPLADDER_ISA

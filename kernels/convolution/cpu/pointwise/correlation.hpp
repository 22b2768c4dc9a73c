// forward of a 1 x 1 kernel, and backward_data of many pixels, as a matrix product:
//
//   forward         y  [group_out, pixels] = w  [group_out, group_in] · x  [group_in, pixels]
//   backward_data   dx [group_in, pixels]  = wᵀ [group_in, group_out] · dy [group_out, pixels]
//
//   block of source   [panels, KC, NR]   gathered from all rows and images, in L2
//   weights           [MR, KC]           read in place, by rows or by columns
//   tile of target    [MR, NR]           registers
//
// If the pixels of a block are contiguous in the target, the tiles are accumulated there, else in a
// block [channels, pixels] that is scattered at the end.
#pragma once

#include <algorithm>
#include <vector>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/gemm_tile.hpp"
#include "kernels/common/cpu/partition.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/convolution/cpu/pointwise/pixel_pairs.hpp"
#include "kernels/convolution/cpu/strided_copy.hpp"
#include "kernels/convolution/cpu/threaded_convolution.hpp"

namespace stepladder::convolution::inline STEPLADDER_ISA {

class PointwiseCorrelation final : public ThreadedConvolution {
 public:
  PointwiseCorrelation(const Problem& problem, int threads)
      : p_(problem),
        threads_(threads),
        forward_(problem.direction == Direction::forward),
        pairs_(problem),
        source_channels_(forward_ ? p_.group_in() : p_.group_out()),
        target_channels_(forward_ ? p_.group_out() : p_.group_in()),
        source_plane_(forward_ ? p_.height * p_.width : p_.out_h() * p_.out_w()),
        target_plane_(forward_ ? p_.out_h() * p_.out_w() : p_.height * p_.width),
        k_blocks_(ceil_div(source_channels_, max_kc)),
        kc_(ceil_div(source_channels_, k_blocks_)),
        max_columns_(std::clamp<std::int64_t>(max_block_floats / kc_ / Tile::columns, 1, 16) *
                     Tile::columns),
        in_place_(pairs_.cover_x() && pairs_.cover_y() && pairs_.per_image() >= min_image_pixels) {
    if (in_place_)
      split_images();
    else
      split_batch();
    workspaces_.resize(static_cast<std::size_t>(threads));
    for (Workspace& workspace : workspaces_) {
      workspace.source = panels_of_b(max_columns_ / Tile::columns * panel_size());
      workspace.target = aligned_array<float>(in_place_ ? 0 : target_channels_ * max_columns_);
      workspace.source_segments.reserve(static_cast<std::size_t>(max_columns_));
      workspace.target_segments.reserve(static_cast<std::size_t>(max_columns_));
    }
  }

  void run_phase(int phase, int thread, const Operands& operands) override {
    if (phase == 0) {
      if (forward_ ? pairs_.cover_y() : pairs_.cover_x()) return;
      float* target = forward_ ? operands.y : operands.x;
      const Range part = partition(forward_ ? p_.y_count() : p_.x_count(), threads_, thread);
      std::fill(target + part.begin, target + part.end, 0.0F);
      return;
    }
    Workspace& workspace = workspaces_[static_cast<std::size_t>(thread)];
    const Range part = partition(static_cast<std::int64_t>(blocks_.size()), threads_, thread);
    for (std::int64_t group = 0; group < p_.groups; ++group)
      for (std::int64_t block = part.begin; block < part.end; ++block)
        multiply(group, blocks_[static_cast<std::size_t>(block)], operands, workspace);
  }

 private:
  using Tile = GemmTile<>;
  static constexpr std::int64_t lanes = Tile::lanes;
  static constexpr std::int64_t max_kc = 384;                // source channels of a block
  static constexpr std::int64_t max_block_floats = 1 << 16;  // 256 KiB of source, for L2
  // Smaller images would make blocks too narrow, so their blocks span images.
  static constexpr std::int64_t min_image_pixels = 256;

  struct Workspace {
    AlignedArray<float> source;  // [panels, KC, NR]
    AlignedArray<float> target;  // [target channels, columns]
    std::vector<PixelPairs::Segment> source_segments, target_segments;
  };

  // Blocks of contiguous pixels, each within an image.
  void split_images() {
    for (std::int64_t image = 0; image < p_.batch; ++image)
      for (std::int64_t j = 0; j < pairs_.per_image(); j += max_columns_)
        blocks_.push_back(
            {image * pairs_.per_image() + j,
             image * pairs_.per_image() + std::min(pairs_.per_image(), j + max_columns_)});
  }

  // Blocks of whole vectors across images, equally many per thread.
  void split_batch() {
    const std::int64_t vectors = ceil_div(pairs_.total(), lanes);
    const std::int64_t columns = threads_ * max_columns_;
    const std::int64_t blocks = ceil_div(vectors * lanes, columns) * threads_;
    for (std::int64_t b = 0; b < blocks; ++b) {
      const Range part = partition(vectors, blocks, b);
      blocks_.push_back({part.begin * lanes, std::min(pairs_.total(), part.end * lanes)});
    }
  }

  void multiply(std::int64_t group, const Range& block, const Operands& operands,
                Workspace& workspace) const {
    const float* source =
        (forward_ ? operands.x : operands.y) + group * source_channels_ * source_plane_;
    float* target = (forward_ ? operands.y : operands.x) + group * target_channels_ * target_plane_;
    const std::int64_t columns = block.end - block.begin;
    if (columns == 0) return;
    using Operand = PixelPairs::Operand;
    pairs_.find_segments(block.begin, columns, Tile::columns, forward_ ? Operand::x : Operand::y,
                         workspace.source_segments);
    pairs_.find_segments(block.begin, columns, columns, forward_ ? Operand::y : Operand::x,
                         workspace.target_segments);
    const PixelPairs::Segment& front = workspace.target_segments.front();
    float* c = in_place_ ? target + (forward_ ? front.y : front.x) : workspace.target.get();
    const std::int64_t c_pitch = in_place_ ? target_plane_ : max_columns_;
    // w is [target channels, source channels] in forward, the transpose in backward_data.
    const std::int64_t a_row = forward_ ? source_channels_ : 1;
    const std::int64_t a_step = forward_ ? 1 : target_channels_;
    const float* w = operands.w + group * target_channels_ * source_channels_;
    for (std::int64_t block_index = 0; block_index < k_blocks_; ++block_index) {
      const Range channels = partition(source_channels_, k_blocks_, block_index);
      gather(source, channels, workspace);
      for (std::int64_t i = 0; i < target_channels_; i += Tile::rows)
        for (std::int64_t j = 0; j < columns; j += Tile::columns)
          Tile::multiply_strided(
              channels.end - channels.begin, w + i * a_row + channels.begin * a_step, a_row, a_step,
              workspace.source.get() + j / Tile::columns * panel_size(), Tile::columns,
              c + i * c_pitch + j, c_pitch, std::min(Tile::rows, target_channels_ - i),
              std::min(Tile::columns, columns - j), block_index > 0);
    }
    if (!in_place_) scatter(workspace, target);
  }

  // Gathers the block's pixels into panels [KC, NR].
  void gather(const float* source, const Range& channels, Workspace& workspace) const {
    const std::int64_t step = forward_ ? pairs_.x_step() : 1;
    const float* plane = source + channels.begin * source_plane_;
    float* panels = workspace.source.get();
    for (std::int64_t l = channels.begin; l < channels.end;
         ++l, plane += source_plane_, panels += Tile::columns)
      for (const PixelPairs::Segment& segment : workspace.source_segments)
        gather_strided(
            plane + (forward_ ? segment.x : segment.y), step, segment.count,
            panels + segment.first / Tile::columns * panel_size() + segment.first % Tile::columns);
  }

  // Scatters the block [target channels, columns] to its pixels.
  void scatter(const Workspace& workspace, float* target) const {
    const std::int64_t step = forward_ ? 1 : pairs_.x_step();
    const float* from = workspace.target.get();
    for (std::int64_t i = 0; i < target_channels_;
         ++i, from += max_columns_, target += target_plane_)
      for (const PixelPairs::Segment& segment : workspace.target_segments)
        scatter_strided(from + segment.first, segment.count, step,
                        target + (forward_ ? segment.y : segment.x));
  }

  // Floats, with room for the vector that the last copy may write beyond.
  std::int64_t panel_size() const { return kc_ * Tile::columns + lanes; }

  Problem p_;
  int threads_;
  bool forward_;
  PixelPairs pairs_;
  std::int64_t source_channels_, target_channels_;  // of one group
  std::int64_t source_plane_, target_plane_;
  std::int64_t k_blocks_, kc_;  // blocks of source channels, and their largest size
  std::int64_t max_columns_;    // of a block: whole panels
  bool in_place_;               // tiles are accumulated in the target
  std::vector<Range> blocks_;   // of pixel pairs
  std::vector<Workspace> workspaces_;
};

}  // namespace stepladder::convolution::inline STEPLADDER_ISA

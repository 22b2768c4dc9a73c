// forward of a 1 x 1 kernel, and backward_data of many pixels, as the matrix product that they are:
//
//   target [channels, pixels] = weights [channels, source channels] · source [source channels, pixels]
//
//   source block   [panels, depth, NR]   gathered from the connected pixels, whatever rows and images
//                                        they are in: second-level cache
//   weights        [MR, depth]           read where they lie, along rows or along columns
//   target tile    [MR, NR]              registers
//
// While the pixels of a block are neighbours in the target, tiles are added up there; else in a block
// [channels, pixels] from which they are spread in the end.
#pragma once

#include <algorithm>
#include <vector>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/gemm_tile.hpp"
#include "kernels/convolution/cpu/pointwise/connected_pixels.hpp"
#include "kernels/convolution/cpu/pointwise/copy_run.hpp"
#include "kernels/convolution/cpu/steps.hpp"

namespace stepladder::convolution::inline STEPLADDER_ISA {

class PointwiseCorrelation final : public Steps {
 public:
  PointwiseCorrelation(const Problem& problem, int threads)
      : p_(problem),
        threads_(threads),
        forward_(problem.direction == Direction::forward),
        pixels_(problem),
        source_channels_(forward_ ? p_.group_in() : p_.group_out()),
        target_channels_(forward_ ? p_.group_out() : p_.group_in()),
        source_plane_(forward_ ? p_.height * p_.width : p_.out_h() * p_.out_w()),
        target_plane_(forward_ ? p_.out_h() * p_.out_w() : p_.height * p_.width),
        depths_((source_channels_ + most_depth - 1) / most_depth),
        depth_((source_channels_ + depths_ - 1) / depths_),
        most_columns_(std::clamp<std::int64_t>(block_floats / depth_ / Tile::columns, 1, 16) *
                      Tile::columns),
        in_place_(pixels_.all_of_x() && pixels_.all_of_y() && pixels_.of_image() >= worth_a_block) {
    if (in_place_)
      cut_images();
    else
      cut_batch();
    workspaces_.resize(static_cast<std::size_t>(threads));
    for (Workspace& workspace : workspaces_) {
      workspace.source = aligned_array<float>(
          static_cast<std::size_t>(most_columns_ / Tile::columns * panel_size()));
      workspace.target = aligned_array<float>(
          static_cast<std::size_t>(in_place_ ? 0 : target_channels_ * most_columns_));
      workspace.source_runs.reserve(static_cast<std::size_t>(most_columns_));
      workspace.target_runs.reserve(static_cast<std::size_t>(most_columns_));
    }
  }

  void step(int step, int thread, const Operands& operands) override {
    if (step == 0) {
      if (forward_ ? pixels_.all_of_y() : pixels_.all_of_x()) return;
      float* target = forward_ ? operands.y : operands.x;
      const Share share(forward_ ? p_.y_count() : p_.x_count(), threads_, thread);
      std::fill(target + share.first, target + share.last, 0.0F);
      return;
    }
    Workspace& workspace = workspaces_[static_cast<std::size_t>(thread)];
    const Share share(static_cast<std::int64_t>(blocks_.size()), threads_, thread);
    for (std::int64_t group = 0; group < p_.groups; ++group)
      for (std::int64_t block = share.first; block < share.last; ++block)
        multiply(group, blocks_[static_cast<std::size_t>(block)], operands, workspace);
  }

 private:
  using Tile = GemmTile<>;
  static constexpr std::int64_t lanes = Tile::lanes;
  static constexpr std::int64_t most_depth = 384;        // source channels at a time
  static constexpr std::int64_t block_floats = 1 << 16;  // of the source: a quarter of a MiB
  static constexpr std::int64_t worth_a_block = 256;     // pixels of an image

  struct Workspace {
    AlignedArray<float> source;  // [panels, depth, NR]
    AlignedArray<float> target;  // [target channels, columns]
    std::vector<ConnectedPixels::Run> source_runs, target_runs;
  };

  // Blocks of pixels that are neighbours: each within an image.
  void cut_images() {
    for (std::int64_t image = 0; image < p_.batch; ++image)
      for (std::int64_t j = 0; j < pixels_.of_image(); j += most_columns_)
        blocks_.push_back(
            {image * pixels_.of_image() + j,
             image * pixels_.of_image() + std::min(pixels_.of_image(), j + most_columns_)});
  }

  // Blocks of whole vectors across images, as many for each thread.
  void cut_batch() {
    const std::int64_t vectors = (pixels_.of_batch() + lanes - 1) / lanes;
    const std::int64_t columns = threads_ * most_columns_;
    const std::int64_t blocks = (vectors * lanes + columns - 1) / columns * threads_;
    for (std::int64_t b = 0; b < blocks; ++b) {
      const Share share(vectors, blocks, b);
      blocks_.push_back({share.first * lanes, std::min(pixels_.of_batch(), share.last * lanes)});
    }
  }

  void multiply(std::int64_t group, const Range& block, const Operands& operands,
                Workspace& workspace) const {
    const float* source =
        (forward_ ? operands.x : operands.y) + group * source_channels_ * source_plane_;
    float* target = (forward_ ? operands.y : operands.x) + group * target_channels_ * target_plane_;
    const std::int64_t columns = block.last - block.first;
    if (columns == 0) return;
    using In = ConnectedPixels::In;
    pixels_.find_runs(block.first, columns, Tile::columns, forward_ ? In::x : In::y,
                      workspace.source_runs);
    pixels_.find_runs(block.first, columns, columns, forward_ ? In::y : In::x,
                      workspace.target_runs);
    const ConnectedPixels::Run& front = workspace.target_runs.front();
    float* c = in_place_ ? target + (forward_ ? front.y : front.x) : workspace.target.get();
    const std::int64_t c_pitch = in_place_ ? target_plane_ : most_columns_;
    // w is [target channels, source channels] forward, and the other way round backward.
    const std::int64_t a_row = forward_ ? source_channels_ : 1;
    const std::int64_t a_step = forward_ ? 1 : target_channels_;
    const float* w = operands.w + group * target_channels_ * source_channels_;
    for (std::int64_t d = 0; d < depths_; ++d) {
      const Share depth(source_channels_, depths_, d);
      gather(source, depth, workspace);
      for (std::int64_t i = 0; i < target_channels_; i += Tile::rows)
        for (std::int64_t j = 0; j < columns; j += Tile::columns)
          Tile::multiply_strided(
              depth.last - depth.first, w + i * a_row + depth.first * a_step, a_row, a_step,
              workspace.source.get() + j / Tile::columns * panel_size(), Tile::columns,
              c + i * c_pitch + j, c_pitch, std::min(Tile::rows, target_channels_ - i),
              std::min(Tile::columns, columns - j), d > 0);
    }
    if (!in_place_) scatter(workspace, target);
  }

  // The panels [depth, NR] of the block's pixels.
  void gather(const float* source, const Share& depth, Workspace& workspace) const {
    const std::int64_t step = forward_ ? pixels_.x_step() : 1;
    const float* plane = source + depth.first * source_plane_;
    float* panels = workspace.source.get();
    for (std::int64_t l = depth.first; l < depth.last;
         ++l, plane += source_plane_, panels += Tile::columns)
      for (const ConnectedPixels::Run& run : workspace.source_runs)
        copy_run(
            plane + (forward_ ? run.x : run.y), step, run.count,
            panels + run.first / Tile::columns * panel_size() + run.first % Tile::columns);
  }

  // From the block [target channels, columns] to where its pixels are.
  void scatter(const Workspace& workspace, float* target) const {
    const std::int64_t step = forward_ ? 1 : pixels_.x_step();
    const float* from = workspace.target.get();
    for (std::int64_t i = 0; i < target_channels_;
         ++i, from += most_columns_, target += target_plane_)
      for (const ConnectedPixels::Run& run : workspace.target_runs)
        spread_run(from + run.first, run.count, step, target + (forward_ ? run.y : run.x));
  }

  // Of the source, with room for the vector that copying the last run may write beyond.
  std::int64_t panel_size() const { return depth_ * Tile::columns + lanes; }

  Problem p_;
  int threads_;
  bool forward_;
  ConnectedPixels pixels_;
  std::int64_t source_channels_, target_channels_;  // of one group
  std::int64_t source_plane_, target_plane_;
  std::int64_t depths_, depth_;  // source channels are taken in so many parts, of at most so many
  std::int64_t most_columns_;    // of a block: whole panels
  bool in_place_;                // a block's pixels are neighbours
  std::vector<Range> blocks_;    // of connected pixels
  std::vector<Workspace> workspaces_;
};

}  // namespace stepladder::convolution::inline STEPLADDER_ISA

// forward and backward_data by Winograd's method. Per block of tiles, in the cache of one thread:
//
//   source  -> transformed tiles  [positions, tiles, source channels]
//   weights -> transformed once   [positions, source channels, panel]
//              products           [positions, tiles, panel]            one product per position
//              target                                                  combined from the products
//
// A panel has as many target channels as the register tile has columns. backward_data is the same
// correlation, from dy to dx, with the kernel rotated by 180 degrees.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/gemm_tile.hpp"
#include "kernels/common/cpu/partition.hpp"
#include "kernels/common/cpu/transpose.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/convolution/cpu/threaded_correlation.hpp"
#include "kernels/convolution/cpu/winograd/tiles.hpp"

namespace stepladder::convolution::inline STEPLADDER_ISA {

template <int pairs, int kernel>
class WinogradCorrelation final : public ThreadedCorrelation {
 public:
  WinogradCorrelation(const Problem& problem, int threads)
      : ThreadedCorrelation(problem, threads),
        target_h_(forward_ ? p_.out_h() : p_.height),
        target_w_(forward_ ? p_.out_w() : p_.width),
        panels_(ceil_div(target_channels_, panel)),
        grid_(p_.batch, ceil_div(target_h_, outputs), ceil_div(target_w_, outputs),
              p_.group_in() * p_.group_out(), threads),
        weights_(aligned_array<float>(p_.groups * panels_ * positions * source_channels_ * panel)) {
    for (int thread = 0; thread < threads; ++thread) workspaces_.emplace_back(*this);
  }

 private:
  using Source = WinogradSource<pairs>;
  using Transform = typename Source::Transform;
  static constexpr std::int64_t lanes = Source::lanes;
  static constexpr std::int64_t tile = Source::tile, positions = Source::positions;
  static constexpr std::int64_t outputs = tile - kernel + 1;  // per row of a tile of the target
  static constexpr std::int64_t taps = kernel * kernel;
  using Gemm = GemmTile<6, vector_registers == 32 ? 4 : 2>;
  static constexpr std::int64_t panel = Gemm::columns;

  struct Workspace {
    explicit Workspace(const WinogradCorrelation& c)
        : source({.channels = c.source_channels_,
                  .height = c.forward_ ? c.p_.height : c.p_.out_h(),
                  .width = c.forward_ ? c.p_.width : c.p_.out_w(),
                  .top = c.forward_ ? -c.p_.pad_h : c.p_.pad_h - (kernel - 1),
                  .left = c.forward_ ? -c.p_.pad_w : c.p_.pad_w - (kernel - 1)},
                 c.grid_, outputs),
          tiles(panels_of_b(source.tiles_size())),
          pitch(c.grid_.block_tiles() * panel + lanes),
          products(aligned_array<float>(positions * pitch)),
          window(aligned_array<float>(c.grid_.block_rows() * c.grid_.columns() * outputs * outputs *
                                      lanes)) {}

    Source source;
    AlignedArray<float> tiles;
    std::int64_t pitch;            // floats of one position, padded as in WinogradSource
    AlignedArray<float> products;  // [positions, tiles, panel]
    AlignedArray<float> window;    // [rows, columns, lanes] of the target
  };

  // Transforms one thread's part of the weights, one vector of target channels at a time.
  void pack(int thread, const float* weights) override {
    alignas(cache_line) float filter[taps * lanes] = {};
    alignas(cache_line) float half[tile * kernel * lanes];
    const std::int64_t target_pitch = forward_ ? p_.group_in() * taps : taps;
    const std::int64_t source_pitch = forward_ ? taps : p_.group_in() * taps;
    const Range part = partition(p_.groups * panels_ * source_channels_, threads_, thread);
    for (std::int64_t item = part.begin; item < part.end; ++item) {
      const std::int64_t c = item % source_channels_, block = item / source_channels_;
      const float* group = weights + block / panels_ * p_.group_out() * p_.group_in() * taps;
      const std::int64_t first = block % panels_ * panel;
      float* to = weights_.get() + (block * positions * source_channels_ + c) * panel;
      for (std::int64_t v = 0; v < panel && first + v < target_channels_; v += lanes) {
        const float* from = group + (first + v) * target_pitch + c * source_pitch;
        transpose(from, target_pitch, filter, lanes, std::min(lanes, target_channels_ - first - v),
                  taps);
        const std::int64_t start =
            forward_ ? 0 : (taps - 1) * lanes;  // backward_data: in reverse order
        const std::int64_t step = forward_ ? lanes : -lanes;
        for (std::int64_t s = 0; s < kernel; ++s)
          Transform::template evaluate<kernel>(filter + start + s * step, kernel * step,
                                               half + s * lanes, kernel * lanes);
        for (std::int64_t i = 0; i < tile; ++i)
          Transform::template evaluate<kernel>(half + i * kernel * lanes, lanes,
                                               to + i * tile * source_channels_ * panel + v,
                                               source_channels_ * panel);
      }
    }
  }

  void correlate(int thread, const float* source, float* target) override {
    Workspace& work = workspaces_[static_cast<std::size_t>(thread)];
    const std::int64_t source_image = forward_ ? p_.x_count() / p_.batch : p_.y_count() / p_.batch;
    const Range part = partition(p_.groups * grid_.blocks(), threads_, thread);
    for (std::int64_t item = part.begin; item < part.end; ++item) {
      const std::int64_t group = item / grid_.blocks();
      const TileGrid::Block block = grid_.block(item % grid_.blocks());
      const std::int64_t image_group = block.first_image * p_.groups + group;
      work.source.transform(source + image_group * (source_image / p_.groups), source_image, block,
                            source_channels_, work.tiles.get());
      for (std::int64_t i = 0; i < panels_; ++i) {
        multiply(work, block,
                 weights_.get() + (group * panels_ + i) * positions * source_channels_ * panel,
                 std::min(panel, round_up(target_channels_ - i * panel, lanes)));
        for (std::int64_t v = 0; v < panel && i * panel + v < target_channels_; v += lanes)
          for (std::int64_t n = 0; n < block.images; ++n)
            write(work, block, n, v,
                  target + ((image_group + n * p_.groups) * target_channels_ + i * panel + v) *
                               target_h_ * target_w_,
                  std::min(lanes, target_channels_ - i * panel - v));
      }
    }
  }

  // products[position] = tiles[position] · weights[position]. weights: [positions, channels,
  // panel], of which the first `columns` columns are used.
  void multiply(Workspace& work, const TileGrid::Block& block, const float* weights,
                std::int64_t columns) const {
    const std::int64_t tiles = block.images * block.rows * grid_.columns();
    const std::int64_t row = work.source.row(), row_tiles = ceil_div(tiles, Gemm::rows);
    for (std::int64_t position = 0; position < positions; ++position) {
      for (std::int64_t i = 0; i < row_tiles; ++i) {
        const Range rows = partition(tiles, row_tiles, i);
        Gemm::multiply_strided(source_channels_,
                               work.tiles.get() + position * work.source.pitch() + rows.begin * row,
                               row, 1, weights + position * source_channels_ * panel, panel,
                               work.products.get() + position * work.pitch + rows.begin * panel,
                               panel, rows.end - rows.begin, columns, false);
      }
    }
  }

  // Writes one vector of channels of image n of the block. target: [channels, h, w].
  void write(Workspace& work, const TileGrid::Block& block, std::int64_t n, std::int64_t v,
             float* target, std::int64_t channels) const {
    alignas(cache_line) float half[outputs * tile * lanes];
    const std::int64_t window_row = grid_.columns() * outputs * lanes;
    const float* products = work.products.get() + n * block.rows * grid_.columns() * panel + v;
    for (std::int64_t i = 0; i < block.rows; ++i)
      for (std::int64_t j = 0; j < grid_.columns(); ++j, products += panel) {
        for (std::int64_t b = 0; b < tile; ++b)
          Transform::template combine<outputs>(products + b * work.pitch, tile * work.pitch,
                                               half + b * lanes, tile * lanes);
        float* to = work.window.get() + i * outputs * window_row + j * outputs * lanes;
        for (std::int64_t a = 0; a < outputs; ++a)
          Transform::template combine<outputs>(half + a * tile * lanes, lanes, to + a * window_row,
                                               lanes);
      }
    const std::int64_t first = block.first_row * outputs;
    const std::int64_t last = std::min(target_h_, first + block.rows * outputs);
    for (std::int64_t i = first; i < last; ++i)
      transpose(work.window.get() + (i - first) * window_row, lanes, target + i * target_w_,
                target_h_ * target_w_, target_w_, channels);
  }

  std::int64_t target_h_, target_w_, panels_;
  TileGrid grid_;
  AlignedArray<float> weights_;  // [groups, panels, positions, source channels, panel]
  std::vector<Workspace> workspaces_;
};

}  // namespace stepladder::convolution::inline STEPLADDER_ISA

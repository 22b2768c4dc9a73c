// forward and backward_data as a tiled matrix product with one operand unfolded on the fly:
//
//   target [channels, pixels] = packed weights [channels, taps] · unfolded source [taps, pixels]
//
//   source ──copy──> local image ──unfold──> panels [taps, columns], in L2
//   (rows of a       (with zeros for         (B of GemmTile)
//   few pixels)      padding)
//
// The local image contains the padding. With a stride its columns are sorted by remainder modulo
// the stride. So unfolding is a copy of vectors from one fixed offset per tap. A vector may write
// past the end of a row; the next vector overwrites the excess.
//
// backward_data is the same product with x and y exchanged and the kernel rotated by 180 degrees.
// With a stride, the pixels of dx form stride_h · stride_w classes that use different elements of
// the kernel. Each class is a correlation without a stride, so no product with zero is computed.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/gemm_tile.hpp"
#include "kernels/common/cpu/partition.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/convolution/cpu/pack_filters.hpp"
#include "kernels/convolution/cpu/strided_copy.hpp"
#include "kernels/convolution/cpu/threaded_correlation.hpp"
#include "kernels/convolution/cpu/tiled/pixel_block.hpp"
#include "kernels/convolution/cpu/valid_range.hpp"

namespace stepladder::convolution::inline STEPLADDER_ISA {

class TiledCorrelation final : public ThreadedCorrelation {
 public:
  TiledCorrelation(const Problem& problem, int threads) : ThreadedCorrelation(problem, threads) {
    for (const Correlation& each : correlations_.all) add_sub_correlation(each.h, each.w);
    packed_ = aligned_array<float>(packed_size_);
    workspaces_.resize(static_cast<std::size_t>(threads));
    for (Workspace& workspace : workspaces_) allocate(workspace);
  }

 private:
  void pack(int thread, const float* weights) override {
    for (const SubCorrelation& sub : sub_correlations_) pack(sub, thread, weights);
  }
  void correlate(int thread, const float* source, float* target) override {
    Workspace& workspace = workspaces_[static_cast<std::size_t>(thread)];
    for (const SubCorrelation& sub : sub_correlations_)
      correlate(sub, thread, source, target, workspace);
  }

  using Tile = GemmTile<>;

  // The unfolded block [taps, pixels] stays in L2: 256 KiB, a quarter of an L2 of 1 MiB.
  static constexpr std::int64_t max_block_floats = 1 << 16;
  static constexpr std::int64_t max_block_taps = 384;
  static constexpr std::int64_t max_block_pixels = 768;

  // forward, or one class of pixels of backward_data.
  struct SubCorrelation {
    Axis h, w;
    Grid grid;
    std::int64_t taps;             // of one channel
    std::int64_t channels;         // source channels unfolded together
    std::int64_t remainders;       // number of remainders of columns modulo the stride
    std::int64_t remainder_pitch;  // columns of one remainder in a row of the local image
    std::int64_t row_pitch;
    // Offset of its weights: [groups, panels, source channels · taps, Tile::rows].
    std::int64_t packed;
    // The row of each tap, and its offset within the row.
    std::vector<std::int64_t> tap_rows, tap_columns;
  };

  // One vector of a panel's row: its offset there and in the local image, relative to the tap.
  struct VectorCopy {
    std::int64_t to, from;
  };

  struct Workspace {
    PixelBlock block;
    AlignedArray<float> image;             // [channels, local rows, row_pitch]
    AlignedArray<float> panels;            // [panel, block taps, Tile::columns]
    std::vector<std::int64_t> target;      // offset in the target of each pixel of the block
    std::vector<VectorCopy> copies;        // of all panels
    std::vector<std::int64_t> copies_end;  // of each panel
  };

  std::int64_t row_panels() const { return ceil_div(target_channels_, Tile::rows); }

  void add_sub_correlation(Axis h, Axis w) {
    if (h.pointwise() && w.pointwise()) {
      w.source = w.target = w.pixels = h.pixels * w.pixels;
      h.source = h.target = h.pixels = 1;
    }
    SubCorrelation sub{};
    sub.h = h;
    sub.w = w;
    sub.taps = h.taps * w.taps;
    const std::int64_t blocks =
        ceil_div(source_channels_, std::max<std::int64_t>(1, max_block_taps / sub.taps));
    sub.channels = ceil_div(source_channels_, blocks);
    const std::int64_t fitting =
        max_block_floats / (sub.channels * sub.taps) / Tile::columns * Tile::columns;
    const std::int64_t pixels = std::clamp<std::int64_t>(fitting, Tile::columns, max_block_pixels);
    sub.grid = {h.pixels, w.pixels, h.stride, h.taps, pixels};
    sub.remainders = std::min(w.stride, w.taps);
    sub.remainder_pitch = sub.grid.window() + (w.taps - 1) / w.stride;
    sub.row_pitch = sub.remainders * sub.remainder_pitch;
    for (std::int64_t t = 0; t < h.taps; ++t)
      for (std::int64_t u = 0; u < w.taps; ++u) {
        sub.tap_rows.push_back(t);
        sub.tap_columns.push_back(u % w.stride * sub.remainder_pitch + u / w.stride);
      }
    sub.packed = packed_size_;
    packed_size_ += p_.groups * row_panels() * source_channels_ * sub.taps * Tile::rows;
    sub_correlations_.push_back(std::move(sub));
  }

  void allocate(Workspace& workspace) {
    std::int64_t image = 0, panels = 0, pixels = 0, copies = 0;
    for (const SubCorrelation& sub : sub_correlations_) {
      workspace.block.reserve(sub.grid);
      const std::int64_t rows = PixelBlock::max_local_rows(sub.grid);
      image = std::max(image, sub.channels * rows * sub.row_pitch);
      panels = std::max(panels, sub.channels * sub.taps * sub.grid.block_pixels);
      pixels = std::max(pixels, sub.grid.block_pixels);
      // Copies end with rows, panels and vectors; each copies at least one pixel.
      copies = std::max(copies, sub.grid.block_pixels);
    }
    workspace.image = panels_of_b(image + std::int64_t{Vector::size});
    workspace.panels = panels_of_b(panels + std::int64_t{Vector::size});
    workspace.target.resize(static_cast<std::size_t>(pixels));
    workspace.copies.reserve(static_cast<std::size_t>(copies));
    workspace.copies_end.reserve(static_cast<std::size_t>(pixels / Tile::columns));
  }

  // Packs the weights into panels [source channel, tap, Tile::rows target channels].
  void pack(const SubCorrelation& sub, int thread, const float* weights) {
    const std::int64_t panel = source_channels_ * sub.taps * Tile::rows;
    const Range part = partition(p_.groups * row_panels(), threads_, thread);
    for (std::int64_t item = part.begin; item < part.end; ++item) {
      const std::int64_t first = item % row_panels() * Tile::rows;
      pack_filters(p_, {sub.h, sub.w}, weights, item / row_panels(), {0, source_channels_},
                   {first, std::min(first + Tile::rows, target_channels_)}, Tile::rows,
                   packed_.get() + sub.packed + item * panel);
    }
  }

  // Computes one thread's pixels of all groups, block by block.
  void correlate(const SubCorrelation& sub, int thread, const float* source, float* target,
                 Workspace& workspace) {
    const std::int64_t pixels = p_.batch * sub.grid.rows * sub.grid.columns;
    const std::int64_t panels = ceil_div(pixels, Tile::columns);
    const Range part = partition(p_.groups * panels, threads_, thread);
    for (std::int64_t item = part.begin; item < part.end;) {
      const std::int64_t group = item / panels, panel = item % panels;
      const std::int64_t until = std::min(part.end - item, panels - panel);
      const std::int64_t count = std::min(until, sub.grid.block_pixels / Tile::columns);
      const std::int64_t first = panel * Tile::columns;
      correlate_block(sub, group, first, std::min(count * Tile::columns, pixels - first), source,
                      target, workspace);
      item += count;
    }
  }

  void correlate_block(const SubCorrelation& sub, std::int64_t group, std::int64_t first,
                       std::int64_t pixels, const float* source, float* target,
                       Workspace& workspace) {
    workspace.block.set(sub.grid, first, pixels);
    locate(sub, workspace);
    const std::int64_t target_plane = sub.h.target * sub.w.target;
    const std::int64_t source_plane = sub.h.source * sub.w.source;
    target += group * target_channels_ * target_plane;
    source += group * source_channels_ * source_plane;
    const std::int64_t all_taps = source_channels_ * sub.taps;
    const float* weights =
        packed_.get() + sub.packed + group * row_panels() * all_taps * Tile::rows;

    for (std::int64_t channel = 0; channel < source_channels_; channel += sub.channels) {
      const std::int64_t channels = std::min(sub.channels, source_channels_ - channel);
      const std::int64_t taps = channels * sub.taps;
      copy_image(sub, source + channel * source_plane, channels, workspace);
      unfold(sub, channels, workspace);
      for (std::int64_t row = 0; row < target_channels_; row += Tile::rows) {
        const float* a = weights + row * all_taps + channel * sub.taps * Tile::rows;
        const std::int64_t rows = std::min(Tile::rows, target_channels_ - row);
        for (std::int64_t column = 0; column < pixels; column += Tile::columns)
          multiply(taps, a, workspace.panels.get() + column * taps, target + row * target_plane,
                   target_plane, rows, std::min(Tile::columns, pixels - column),
                   workspace.target.data() + column, channel > 0);
      }
    }
  }

  // A tile whose pixels are contiguous in the target is written in place. A tile that spans two
  // images, or has strided pixels, is computed in `block` and scattered.
  static void multiply(std::int64_t taps, const float* a, const float* b, float* target,
                       std::int64_t plane, std::int64_t rows, std::int64_t columns,
                       const std::int64_t* offset, bool accumulate) {
    if (offset[columns - 1] - offset[0] == columns - 1) {
      Tile::multiply(taps, a, b, target + offset[0], plane, rows, columns, accumulate);
      return;
    }
    alignas(cache_line) float block[Tile::rows * Tile::columns];
    Tile::multiply(taps, a, b, block, Tile::columns, rows, columns, false);
    for (std::int64_t i = 0; i < rows; ++i, target += plane)
      for (std::int64_t j = 0; j < columns; ++j) {
        const float sum = block[i * Tile::columns + j];
        target[offset[j]] = accumulate ? target[offset[j]] + sum : sum;
      }
  }

  // Fills target, copies and copies_end for the block.
  void locate(const SubCorrelation& sub, Workspace& workspace) const {
    const std::int64_t image_size = p_.groups * target_channels_ * sub.h.target * sub.w.target;
    workspace.copies.clear();
    workspace.copies_end.clear();
    std::int64_t at = 0;  // pixel within the block
    for (const PixelBlock::Segment& segment : workspace.block.segments()) {
      const std::int64_t row =
          segment.image * image_size + (sub.h.first + segment.row * sub.h.step) * sub.w.target;
      const std::int64_t from = segment.local_row * sub.row_pitch + segment.local_column;
      std::int64_t* target = workspace.target.data() + at;
      for (std::int64_t i = 0; i < segment.length; ++i)
        target[i] = row + sub.w.first + (segment.column + i) * sub.w.step;
      for (std::int64_t i = 0; i < segment.length;) {
        const std::int64_t to = (at + i) % Tile::columns;
        if (to == 0 && at + i > 0)
          workspace.copies_end.push_back(static_cast<std::int64_t>(workspace.copies.size()));
        workspace.copies.push_back({to, from + i});
        i += std::min(
            {static_cast<std::int64_t>(Vector::size), segment.length - i, Tile::columns - to});
      }
      at += segment.length;
    }
    workspace.copies_end.push_back(static_cast<std::int64_t>(workspace.copies.size()));
  }

  // Copies the rows that the block reads, of `channels` channels, with their padding.
  void copy_image(const SubCorrelation& sub, const float* source, std::int64_t channels,
                  Workspace& workspace) const {
    const std::int64_t source_plane = sub.h.source * sub.w.source;
    const std::int64_t image_size = p_.groups * source_channels_ * source_plane;
    const std::int64_t channel_pitch = workspace.block.local_rows() * sub.row_pitch;
    for (std::int64_t c = 0; c < channels; ++c)
      for (const PixelBlock::Span& span : workspace.block.spans()) {
        const float* plane = source + span.image * image_size + c * source_plane;
        float* to = workspace.image.get() + c * channel_pitch + span.local_row * sub.row_pitch;
        const std::int64_t rows = (span.rows - 1) * sub.h.stride + sub.h.taps;
        for (std::int64_t i = 0; i < rows; ++i, to += sub.row_pitch) {
          if (i % sub.h.stride >= sub.h.taps) continue;  // between taps, never read
          const std::int64_t row = span.row * sub.h.stride + i + sub.h.origin;
          if (row < 0 || row >= sub.h.source)
            std::fill_n(to, sub.row_pitch, 0.0F);
          else
            copy_row(sub, plane + row * sub.w.source, span.column * sub.w.stride + sub.w.origin,
                     to);
        }
      }
  }

  // to[remainder, i] = from[first + i · stride + remainder], zero outside the row.
  static void copy_row(const SubCorrelation& sub, const float* from, std::int64_t first,
                       float* to) {
    for (std::int64_t remainder = 0; remainder < sub.remainders;
         ++remainder, to += sub.remainder_pitch) {
      const std::int64_t offset = first + remainder;
      const Range valid = valid_range(sub.w.source, sub.remainder_pitch, sub.w.stride, offset);
      std::fill(to, to + valid.begin, 0.0F);
      if (valid.begin < valid.end)
        gather_strided(from + offset + valid.begin * sub.w.stride, sub.w.stride,
                       valid.end - valid.begin, to + valid.begin);
      std::fill(to + std::max(valid.begin, valid.end), to + sub.remainder_pitch, 0.0F);
    }
  }

  // Unfolds the local image into panels [channel, tap, Tile::columns].
  void unfold(const SubCorrelation& sub, std::int64_t channels, Workspace& workspace) const {
    const std::int64_t channel_pitch = workspace.block.local_rows() * sub.row_pitch;
    const VectorCopy* begin = workspace.copies.data();
    float* to = workspace.panels.get();
    for (const std::int64_t end : workspace.copies_end) {
      const VectorCopy* last = workspace.copies.data() + end;
      for (std::int64_t c = 0; c < channels; ++c)
        for (std::int64_t t = 0; t < sub.taps; ++t, to += Tile::columns) {
          const auto tap = static_cast<std::size_t>(t);
          const float* from = workspace.image.get() + c * channel_pitch +
                              sub.tap_rows[tap] * sub.row_pitch + sub.tap_columns[tap];
          for (const VectorCopy* i = begin; i != last; ++i)
            Vector::load_unaligned(from + i->from).store_unaligned(to + i->to);
        }
      begin = last;
    }
  }

  std::vector<SubCorrelation> sub_correlations_;
  std::int64_t packed_size_ = 0;
  AlignedArray<float> packed_;
  std::vector<Workspace> workspaces_;  // [threads]
};

}  // namespace stepladder::convolution::inline STEPLADDER_ISA

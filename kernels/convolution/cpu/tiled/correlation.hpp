// forward and backward_data as a tiled matrix product whose one operand is unfolded on the fly.
//
//   target [channels, pixels] = packed weights [channels, taps] · unfolded source [taps, pixels]
//
//   source x ──copy──> local image ──unfold──> panels [taps, columns]   in the second-level cache
//   (rows of a few     (padding written        (GemmTile's b)
//    pixels)            as zeros)
//
// The local image holds the zeros of the padding and, for a stride, its columns sorted by
// remainder, so that unfolding is nothing but copying vectors from one fixed offset per tap.
// Vectors overshoot the end of a row; the next vector, written later, covers that.
//
// backward_data is the same product with the roles of x and y exchanged and the kernel turned
// round. With a stride, the pixels of dx fall into stride_h · stride_w classes that see different
// elements of the kernel; each class is a correlation of its own, without a stride, so that no zero
// is multiplied in vain.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/gemm_tile.hpp"
#include "kernels/convolution/axis.hpp"
#include "kernels/convolution/cpu/inside.hpp"
#include "kernels/convolution/cpu/tiled/pixel_block.hpp"
#include "kernels/convolution/cpu/steps.hpp"

namespace stepladder::convolution::inline STEPLADDER_ISA {

class Correlation final : public Steps {
 public:
  Correlation(const Problem& problem, int threads) : p_(problem), threads_(threads) {
    if (p_.direction == Direction::forward) {
      source_channels_ = p_.group_in();
      target_channels_ = p_.group_out();
      add_pass(forward_axis(p_.height, p_.out_h(), p_.kernel_h, p_.stride_h, p_.pad_h),
               forward_axis(p_.width, p_.out_w(), p_.kernel_w, p_.stride_w, p_.pad_w));
    } else {
      source_channels_ = p_.group_out();
      target_channels_ = p_.group_in();
      for (std::int64_t i = 0; i < p_.stride_h; ++i)
        for (std::int64_t j = 0; j < p_.stride_w; ++j)
          add_pass(backward_axis(p_.height, p_.out_h(), p_.kernel_h, p_.stride_h, p_.pad_h, i),
                   backward_axis(p_.width, p_.out_w(), p_.kernel_w, p_.stride_w, p_.pad_w, j));
    }
    packed_ = aligned_array<float>(static_cast<std::size_t>(packed_size_));
    workspaces_.resize(static_cast<std::size_t>(threads));
    for (Workspace& workspace : workspaces_) allocate(workspace);
  }

  void step(int step, int thread, const Operands& operands) override {
    const bool forward = p_.direction == Direction::forward;
    const float* source = forward ? operands.x : operands.y;
    float* target = forward ? operands.y : operands.x;
    if (step == 0) {
      for (const Pass& pass : passes_) pack(pass, thread, operands.w);
      if (untouched_pixels_) {
        const Share share(p_.x_count(), threads_, thread);
        std::fill(target + share.first, target + share.last, 0.0F);
      }
      return;
    }
    Workspace& workspace = workspaces_[static_cast<std::size_t>(thread)];
    for (const Pass& pass : passes_) correlate(pass, thread, source, target, workspace);
  }

 private:
  using Tile = GemmTile<>;

  // The unfolded block [block_taps, block_pixels] should stay in the second-level cache.
  static constexpr std::int64_t block_floats = 65536;
  static constexpr std::int64_t block_taps = 384;
  static constexpr std::int64_t most_block_pixels = 768;

  struct Pass {
    Axis h, w;
    Grid grid;
    std::int64_t taps;         // of one channel
    std::int64_t channels;     // source channels unfolded together
    std::int64_t phases;       // remainders of columns that taps use
    std::int64_t phase_pitch;  // columns of one remainder in a row of the local image
    std::int64_t row_pitch;
    std::int64_t
        packed;  // where its weights begin: [groups, panels, source channels · taps, Tile::rows]
    std::vector<std::int64_t> tap_rows,
        tap_columns;  // of each tap: its row; its offset within the row
  };

  // One vector to be copied for every tap: from the local image to a row of the panel.
  struct Piece {
    std::int64_t to, from;
  };

  struct Workspace {
    PixelBlock block;
    AlignedArray<float> image;               // [channels, local rows, row_pitch]
    AlignedArray<float> panels;              // [panel, block taps, Tile::columns]
    std::vector<std::int64_t> target;        // of each pixel of the block: its offset in the target
    std::vector<Piece> pieces;               // of all panels
    std::vector<std::int64_t> panel_pieces;  // where each panel's pieces end
  };

  static std::int64_t panels_of(std::int64_t items, std::int64_t width) {
    return (items + width - 1) / width;
  }
  std::int64_t row_panels() const { return panels_of(target_channels_, Tile::rows); }

  void add_pass(Axis h, Axis w) {
    if (h.pixels == 0 || w.pixels == 0) return;
    if (h.taps == 0 || w.taps == 0) {
      untouched_pixels_ = true;
      return;
    }
    if (h.pointwise() && w.pointwise()) {
      w.source = w.target = w.pixels = h.pixels * w.pixels;
      h.source = h.target = h.pixels = 1;
    }
    Pass pass{};
    pass.h = h;
    pass.w = w;
    pass.taps = h.taps * w.taps;
    const std::int64_t blocks =
        panels_of(source_channels_, std::max<std::int64_t>(1, block_taps / pass.taps));
    pass.channels = panels_of(source_channels_, blocks);
    const std::int64_t fitting =
        block_floats / (pass.channels * pass.taps) / Tile::columns * Tile::columns;
    const std::int64_t pixels = std::clamp<std::int64_t>(fitting, Tile::columns, most_block_pixels);
    pass.grid = {h.pixels, w.pixels, h.stride, h.taps, pixels};
    pass.phases = std::min(w.stride, w.taps);
    pass.phase_pitch = pass.grid.window() + (w.taps - 1) / w.stride;
    pass.row_pitch = pass.phases * pass.phase_pitch;
    for (std::int64_t t = 0; t < h.taps; ++t)
      for (std::int64_t u = 0; u < w.taps; ++u) {
        pass.tap_rows.push_back(t);
        pass.tap_columns.push_back(u % w.stride * pass.phase_pitch + u / w.stride);
      }
    pass.packed = packed_size_;
    packed_size_ += p_.groups * row_panels() * source_channels_ * pass.taps * Tile::rows;
    passes_.push_back(std::move(pass));
  }

  void allocate(Workspace& workspace) {
    std::int64_t image = 0, panels = 0, pixels = 0, pieces = 0;
    for (const Pass& pass : passes_) {
      workspace.block.reserve(pass.grid);
      const std::int64_t rows = PixelBlock::most_local_rows(pass.grid);
      image = std::max(image, pass.channels * rows * pass.row_pitch);
      panels = std::max(panels, pass.channels * pass.taps * pass.grid.block_pixels);
      pixels = std::max(pixels, pass.grid.block_pixels);
      // A panel is cut at the ends of rows and of vectors; a row is at least one pixel long.
      pieces = std::max(pieces, pass.grid.block_pixels);
    }
    workspace.image = aligned_array<float>(static_cast<std::size_t>(image) + Vector::size);
    workspace.panels = aligned_array<float>(static_cast<std::size_t>(panels) + Vector::size);
    workspace.target.resize(static_cast<std::size_t>(pixels));
    workspace.pieces.reserve(static_cast<std::size_t>(pieces));
    workspace.panel_pieces.reserve(static_cast<std::size_t>(pixels / Tile::columns));
  }

  // Weights of one pass into panels [source channel, tap, Tile::rows target channels].
  void pack(const Pass& pass, int thread, const float* weights) {
    const bool forward = p_.direction == Direction::forward;
    const std::int64_t plane = p_.kernel_h * p_.kernel_w;
    const std::int64_t source_pitch = forward ? plane : p_.group_in() * plane;
    const std::int64_t target_pitch = forward ? p_.group_in() * plane : plane;
    const Share share(p_.groups * row_panels(), threads_, thread);
    for (std::int64_t item = share.first; item < share.last; ++item) {
      const std::int64_t group = item / row_panels(), first = item % row_panels() * Tile::rows;
      const std::int64_t rows = std::min(Tile::rows, target_channels_ - first);
      const float* from =
          weights + group * p_.group_out() * p_.group_in() * plane + first * target_pitch;
      float* to = packed_.get() + pass.packed + item * source_channels_ * pass.taps * Tile::rows;
      for (std::int64_t c = 0; c < source_channels_; ++c)
        for (std::int64_t t = 0; t < pass.h.taps; ++t)
          for (std::int64_t u = 0; u < pass.w.taps; ++u, to += Tile::rows) {
            const float* tap = from + c * source_pitch +
                               (pass.h.kernel_first + t * pass.h.kernel_step) * p_.kernel_w +
                               pass.w.kernel_first + u * pass.w.kernel_step;
            for (std::int64_t i = 0; i < rows; ++i) to[i] = tap[i * target_pitch];
          }
    }
  }

  // One thread's pixels of all groups, block by block.
  void correlate(const Pass& pass, int thread, const float* source, float* target,
                 Workspace& workspace) {
    const std::int64_t pixels = p_.batch * pass.grid.rows * pass.grid.columns;
    const std::int64_t panels = panels_of(pixels, Tile::columns);
    const Share share(p_.groups * panels, threads_, thread);
    for (std::int64_t item = share.first; item < share.last;) {
      const std::int64_t group = item / panels, panel = item % panels;
      const std::int64_t until = std::min(share.last - item, panels - panel);
      const std::int64_t count = std::min(until, pass.grid.block_pixels / Tile::columns);
      const std::int64_t first = panel * Tile::columns;
      correlate_block(pass, group, first, std::min(count * Tile::columns, pixels - first), source,
                      target, workspace);
      item += count;
    }
  }

  void correlate_block(const Pass& pass, std::int64_t group, std::int64_t first,
                       std::int64_t pixels, const float* source, float* target,
                       Workspace& workspace) {
    workspace.block.cover(pass.grid, first, pixels);
    locate(pass, workspace);
    const std::int64_t target_plane = pass.h.target * pass.w.target;
    const std::int64_t source_plane = pass.h.source * pass.w.source;
    target += group * target_channels_ * target_plane;
    source += group * source_channels_ * source_plane;
    const std::int64_t all_taps = source_channels_ * pass.taps;
    const float* weights =
        packed_.get() + pass.packed + group * row_panels() * all_taps * Tile::rows;

    for (std::int64_t channel = 0; channel < source_channels_; channel += pass.channels) {
      const std::int64_t channels = std::min(pass.channels, source_channels_ - channel);
      const std::int64_t taps = channels * pass.taps;
      copy_image(pass, source + channel * source_plane, channels, workspace);
      unfold(pass, channels, workspace);
      for (std::int64_t row = 0; row < target_channels_; row += Tile::rows) {
        const float* a = weights + row * all_taps + channel * pass.taps * Tile::rows;
        const std::int64_t rows = std::min(Tile::rows, target_channels_ - row);
        for (std::int64_t column = 0; column < pixels; column += Tile::columns)
          multiply(taps, a, workspace.panels.get() + column * taps, target + row * target_plane,
                   target_plane, rows, std::min(Tile::columns, pixels - column),
                   workspace.target.data() + column, channel > 0);
      }
    }
  }

  // A tile whose pixels lie side by side in the target is written in place; one that crosses from
  // one image to the next, or whose pixels are apart, goes through a block of its own.
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

  // Fills target, pieces and panel_pieces for the block.
  void locate(const Pass& pass, Workspace& workspace) const {
    const std::int64_t image_size = p_.groups * target_channels_ * pass.h.target * pass.w.target;
    workspace.pieces.clear();
    workspace.panel_pieces.clear();
    std::int64_t at = 0;  // pixel within the block
    for (const PixelBlock::Run& run : workspace.block.runs()) {
      const std::int64_t row =
          run.image * image_size + (pass.h.first + run.row * pass.h.step) * pass.w.target;
      const std::int64_t from = run.local_row * pass.row_pitch + run.local_column;
      std::int64_t* target = workspace.target.data() + at;
      for (std::int64_t i = 0; i < run.length; ++i)
        target[i] = row + pass.w.first + (run.column + i) * pass.w.step;
      for (std::int64_t i = 0; i < run.length;) {
        const std::int64_t to = (at + i) % Tile::columns;
        if (to == 0 && at + i > 0)
          workspace.panel_pieces.push_back(static_cast<std::int64_t>(workspace.pieces.size()));
        workspace.pieces.push_back({to, from + i});
        i +=
            std::min({static_cast<std::int64_t>(Vector::size), run.length - i, Tile::columns - to});
      }
      at += run.length;
    }
    workspace.panel_pieces.push_back(static_cast<std::int64_t>(workspace.pieces.size()));
  }

  // The rows that the block needs, of `channels` channels, with their padding.
  void copy_image(const Pass& pass, const float* source, std::int64_t channels,
                  Workspace& workspace) const {
    const std::int64_t source_plane = pass.h.source * pass.w.source;
    const std::int64_t image_size = p_.groups * source_channels_ * source_plane;
    const std::int64_t channel_pitch = workspace.block.local_rows() * pass.row_pitch;
    for (std::int64_t c = 0; c < channels; ++c)
      for (const PixelBlock::Span& span : workspace.block.spans()) {
        const float* plane = source + span.image * image_size + c * source_plane;
        float* to = workspace.image.get() + c * channel_pitch + span.local_row * pass.row_pitch;
        const std::int64_t rows = (span.rows - 1) * pass.h.stride + pass.h.taps;
        for (std::int64_t i = 0; i < rows; ++i, to += pass.row_pitch) {
          if (i % pass.h.stride >= pass.h.taps) continue;  // between the taps: never read
          const std::int64_t row = span.row * pass.h.stride + i + pass.h.origin;
          if (row < 0 || row >= pass.h.source)
            std::fill_n(to, pass.row_pitch, 0.0F);
          else
            copy_row(pass, plane + row * pass.w.source, span.column * pass.w.stride + pass.w.origin,
                     to);
        }
      }
  }

  // to[phase, i] = from[first + i · stride + phase], zero outside the row.
  static void copy_row(const Pass& pass, const float* from, std::int64_t first, float* to) {
    for (std::int64_t phase = 0; phase < pass.phases; ++phase, to += pass.phase_pitch) {
      const std::int64_t offset = first + phase;
      const Range seen = inside(pass.w.source, pass.phase_pitch, pass.w.stride, offset);
      std::fill(to, to + seen.first, 0.0F);
      if (seen.first < seen.last) {
        if (pass.w.stride == 1)
          std::copy(from + offset + seen.first, from + offset + seen.last, to + seen.first);
        else
          for (std::int64_t i = seen.first; i < seen.last; ++i)
            to[i] = from[offset + i * pass.w.stride];
      }
      std::fill(to + std::max(seen.first, seen.last), to + pass.phase_pitch, 0.0F);
    }
  }

  // The local image into panels [channel, tap, Tile::columns].
  void unfold(const Pass& pass, std::int64_t channels, Workspace& workspace) const {
    const std::int64_t channel_pitch = workspace.block.local_rows() * pass.row_pitch;
    const Piece* piece = workspace.pieces.data();
    float* to = workspace.panels.get();
    for (const std::int64_t end : workspace.panel_pieces) {
      const Piece* last = workspace.pieces.data() + end;
      for (std::int64_t c = 0; c < channels; ++c)
        for (std::int64_t t = 0; t < pass.taps; ++t, to += Tile::columns) {
          const auto tap = static_cast<std::size_t>(t);
          const float* from = workspace.image.get() + c * channel_pitch +
                              pass.tap_rows[tap] * pass.row_pitch + pass.tap_columns[tap];
          for (const Piece* i = piece; i != last; ++i)
            Vector::load_unaligned(from + i->from).store_unaligned(to + i->to);
        }
      piece = last;
    }
  }

  Problem p_;
  int threads_;
  std::int64_t source_channels_ = 0, target_channels_ = 0;  // of one group
  bool untouched_pixels_ = false;  // pixels of dx that no kernel element reaches
  std::vector<Pass> passes_;       // one, or one for each class of pixels
  std::int64_t packed_size_ = 0;
  AlignedArray<float> packed_;
  std::vector<Workspace> workspaces_;  // of each thread
};

}  // namespace stepladder::convolution::inline STEPLADDER_ISA

// backward_weights as a tiled matrix product that sums over the pixels of the batch.
//
//   dw [group_out, taps] += dyᵀ [pixels, group_out]ᵀ · unfolded x [pixels, taps]
//
//   dy ──transpose──> panels [pixels, Tile::rows]                      (GemmTile's a)
//   x ──transpose──> local image [row, column, channel] ──unfold──> panel [pixels, Tile::columns]
//   (rows of a few   (padding written as zeros)                        (GemmTile's b)
//    pixels)
//
// With the channels innermost, what one pixel sees of one image row is kernel_w · channels floats
// in one piece; unfolding copies vectors from offsets that are the same for all pixels. Vectors
// overshoot; the next vector, written later, covers that. The sums come out in the order [kernel_h,
// kernel_w, channel], in blocks of channels, and are put in dw's own order at the end.
//
// Threads share the pixels, each with partial sums of its own, which are added at the end; when
// there are fewer pixels than taps they share the taps instead, and nothing is left to be added.
#pragma once

#include <algorithm>
#include <vector>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/gemm_tile.hpp"
#include "kernels/common/cpu/transpose.hpp"
#include "kernels/convolution/cpu/inside.hpp"
#include "kernels/convolution/cpu/tiled/pixel_block.hpp"
#include "kernels/convolution/cpu/steps.hpp"

namespace stepladder::convolution::inline STEPLADDER_ISA {

class WeightGradient final : public Steps {
 public:
  WeightGradient(const Problem& problem, int threads)
      : p_(problem),
        threads_(threads),
        pixels_(p_.batch * p_.out_h() * p_.out_w()),
        taps_(p_.group_in() * p_.kernel_h * p_.kernel_w),
        parts_(pixels_ >= taps_ ? threads : 1) {
    const std::int64_t image = p_.out_h() * p_.out_w();
    grid_ = {.rows = p_.out_h(),
             .columns = p_.out_w(),
             .stride = p_.stride_h,
             .taps = p_.kernel_h,
             .block_pixels = image > block_pixels ? block_pixels : block_pixels / image * image};
    local_columns_ = (grid_.window() - 1) * p_.stride_w + p_.kernel_w;

    // Channels of one local image: all, or as many panels of them as fit.
    const std::int64_t floats_of_channel = PixelBlock::most_local_rows(grid_) * local_columns_;
    const std::int64_t fitting = image_floats / floats_of_channel / Tile::columns * Tile::columns;
    channels_ = std::min(p_.group_in(), std::max(fitting, Tile::columns));
    for (std::int64_t channel = 0; channel < p_.group_in(); channel += channels_)
      add_panels(channel, std::min(channels_, p_.group_in() - channel));

    sums_ = aligned_array<float>(static_cast<std::size_t>(parts_ * p_.w_count()));
    workspaces_.resize(static_cast<std::size_t>(threads));
    for (Workspace& workspace : workspaces_) {
      workspace.block.reserve(grid_);
      workspace.image = aligned_array<float>(
          static_cast<std::size_t>(floats_of_channel * channels_) + Vector::size);
      workspace.panel = aligned_array<float>(
          static_cast<std::size_t>(grid_.block_pixels * Tile::columns) + Vector::size);
      workspace.dy = aligned_array<float>(
          static_cast<std::size_t>(grid_.block_pixels * row_panels() * Tile::rows));
    }
  }

  void step(int step, int thread, const Operands& operands) override {
    if (step == 0)
      add_products(thread, operands);
    else
      add_parts(thread, operands.w);
  }

 private:
  using Tile = GemmTile<>;

  static constexpr std::int64_t block_pixels = 384;
  static constexpr std::int64_t image_floats = 65536;

  // One vector to be copied for every pixel: from the local image, counted from the first float
  // that the pixel sees, to the pixel's row of the panel.
  struct Piece {
    std::int64_t from, to;
  };

  struct Panel {
    std::int64_t channel, channels;  // of its block of channels
    std::int64_t first, taps;        // of the sums: within the block; at most Tile::columns
    std::vector<Piece> pieces;
  };

  struct Workspace {
    PixelBlock block;
    AlignedArray<float> image;  // [local rows, local columns, channels]
    AlignedArray<float> panel;  // [pixels, Tile::columns]
    AlignedArray<float> dy;     // [row panels, pixels, Tile::rows]
  };

  std::int64_t row_panels() const { return (p_.group_out() + Tile::rows - 1) / Tile::rows; }

  // Taps of a block of channels are numbered [kernel_h, kernel_w, channel].
  void add_panels(std::int64_t channel, std::int64_t channels) {
    const std::int64_t row = p_.kernel_w * channels, taps = p_.kernel_h * row;
    for (std::int64_t first = 0; first < taps; first += Tile::columns) {
      Panel panel{channel, channels, first, std::min(Tile::columns, taps - first), {}};
      for (std::int64_t to = 0; to < panel.taps;) {
        const std::int64_t tap = first + to;
        panel.pieces.push_back({tap / row * local_columns_ * channels + tap % row, to});
        to += std::min({static_cast<std::int64_t>(Vector::size), row - tap % row, panel.taps - to});
      }
      panels_.push_back(std::move(panel));
    }
  }

  // One thread's products: its pixels and all taps, or all pixels and its taps.
  void add_products(int thread, const Operands& operands) {
    const bool by_pixels = parts_ == threads_;
    const Share pixels(pixels_, by_pixels ? threads_ : 1, by_pixels ? thread : 0);
    const Share panels(static_cast<std::int64_t>(panels_.size()), by_pixels ? 1 : threads_,
                       by_pixels ? 0 : thread);
    float* sums = sums_.get() + (by_pixels ? thread * p_.w_count() : 0);
    if (pixels.first == pixels.last) std::fill_n(sums, p_.w_count(), 0.0F);

    Workspace& workspace = workspaces_[static_cast<std::size_t>(thread)];
    for (std::int64_t group = 0; group < p_.groups; ++group)
      for (std::int64_t first = pixels.first; first < pixels.last; first += grid_.block_pixels) {
        const std::int64_t count = std::min(grid_.block_pixels, pixels.last - first);
        workspace.block.cover(grid_, first, count);
        transpose_dy(operands.y, group, count, workspace);
        for (std::int64_t i = panels.first; i < panels.last; ++i) {
          const Panel& panel = panels_[static_cast<std::size_t>(i)];
          if (i == panels.first || panel.first == 0)
            copy_image(operands.x, group, panel, workspace);
          unfold(panel, workspace);
          // sums: [groups, group_out, channel blocks, kernel_h, kernel_w, channels of the block]
          float* c = sums + group * p_.group_out() * taps_ +
                     panel.channel * p_.kernel_h * p_.kernel_w + panel.first;
          for (std::int64_t row = 0; row < p_.group_out(); row += Tile::rows)
            Tile::multiply(count, workspace.dy.get() + row * count, workspace.panel.get(),
                           c + row * taps_, taps_, std::min(Tile::rows, p_.group_out() - row),
                           panel.taps, first > pixels.first);
        }
      }
  }

  // dy of the block into panels [pixels, Tile::rows].
  void transpose_dy(const float* dy, std::int64_t group, std::int64_t count,
                    Workspace& workspace) const {
    const std::int64_t plane = p_.out_h() * p_.out_w();
    for (std::int64_t row = 0; row < p_.group_out(); row += Tile::rows) {
      float* to = workspace.dy.get() + row * count;
      // Rows of one image follow each other in dy as in the block.
      for (const PixelBlock::Run *run = workspace.block.runs().data(),
                                 *end = run + workspace.block.runs().size();
           run != end;) {
        const PixelBlock::Run& first = *run;
        std::int64_t length = 0;
        for (; run != end && run->image == first.image; ++run) length += run->length;
        const float* from = dy +
                            (first.image * p_.out_channels + group * p_.group_out() + row) * plane +
                            first.row * p_.out_w() + first.column;
        transpose(from, plane, to, Tile::rows, std::min(Tile::rows, p_.group_out() - row),
                        length);
        to += length * Tile::rows;
      }
    }
  }

  // The rows that the block needs, channels innermost, with their padding.
  void copy_image(const float* x, std::int64_t group, const Panel& panel,
                  Workspace& workspace) const {
    const std::int64_t plane = p_.height * p_.width, channels = panel.channels;
    for (const PixelBlock::Span& span : workspace.block.spans()) {
      const float* from =
          x + (span.image * p_.in_channels + group * p_.group_in() + panel.channel) * plane;
      float* to = workspace.image.get() + span.local_row * local_columns_ * channels;
      const std::int64_t rows = (span.rows - 1) * p_.stride_h + p_.kernel_h;
      const std::int64_t offset = span.column * p_.stride_w - p_.pad_w;
      const Range seen = inside(p_.width, local_columns_, 1, offset);
      for (std::int64_t i = 0; i < rows; ++i, to += local_columns_ * channels) {
        const std::int64_t row = span.row * p_.stride_h + i - p_.pad_h;
        if (i % p_.stride_h >= p_.kernel_h) continue;  // between the taps: never read
        if (row < 0 || row >= p_.height || seen.first >= seen.last) {
          std::fill_n(to, local_columns_ * channels, 0.0F);
          continue;
        }
        std::fill(to, to + seen.first * channels, 0.0F);
        transpose(from + row * p_.width + offset + seen.first, plane,
                        to + seen.first * channels, channels, channels, seen.last - seen.first);
        std::fill(to + seen.last * channels, to + local_columns_ * channels, 0.0F);
      }
    }
  }

  // The local image into a panel [pixels, Tile::columns].
  void unfold(const Panel& panel, Workspace& workspace) const {
    const Piece* const end = panel.pieces.data() + panel.pieces.size();
    const std::int64_t step = p_.stride_w * panel.channels;
    float* to = workspace.panel.get();
    for (const PixelBlock::Run& run : workspace.block.runs()) {
      const float* pixel = workspace.image.get() + run.local_row * local_columns_ * panel.channels +
                           run.local_column * step;
      for (std::int64_t i = 0; i < run.length; ++i, pixel += step, to += Tile::columns)
        for (const Piece* piece = panel.pieces.data(); piece != end; ++piece)
          Vector::load_unaligned(pixel + piece->from).store_unaligned(to + piece->to);
    }
  }

  // dw = the sum of all parts, in dw's order; each thread some of the output channels.
  void add_parts(int thread, float* dw) const {
    const std::int64_t plane = p_.kernel_h * p_.kernel_w;
    const Share share(p_.out_channels, threads_, thread);
    for (std::int64_t o = share.first; o < share.last; ++o)
      for (std::int64_t channel = 0; channel < p_.group_in(); channel += channels_) {
        const std::int64_t channels = std::min(channels_, p_.group_in() - channel);
        const float* block =
            sums_.get() + o * taps_ + channel * plane;  // [kernel_h · kernel_w, channels]
        float* to = dw + o * taps_ + channel * plane;   // [channels, kernel_h · kernel_w]
        for (std::int64_t c = 0; c < channels; ++c)
          for (std::int64_t t = 0; t < plane; ++t) {
            const float* sum = block + t * channels + c;
            float total = *sum;
            for (std::int64_t part = 1; part < parts_; ++part) total += sum[part * p_.w_count()];
            to[c * plane + t] = total;
          }
      }
  }

  Problem p_;
  int threads_;
  std::int64_t pixels_, taps_;  // of the batch; of one group
  std::int64_t parts_;          // partial sums: one per thread, or one
  Grid grid_{};
  std::int64_t local_columns_ = 0, channels_ = 0;
  std::vector<Panel> panels_;
  AlignedArray<float> sums_;  // [parts, out_channels, taps]
  std::vector<Workspace> workspaces_;
};

}  // namespace stepladder::convolution::inline STEPLADDER_ISA

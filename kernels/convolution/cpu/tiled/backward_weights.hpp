// backward_weights as a tiled matrix product that sums over the pixels of the batch:
//
//   dw [group_out, taps] += dyᵀ [pixels, group_out]ᵀ · unfolded x [pixels, taps]
//
//   dy ──transpose──> panels [pixels, Tile::rows]                     (A of GemmTile)
//   x  ──transpose──> local image [row, column, channel] ──unfold──> panel [pixels, Tile::columns]
//   (rows of a        (with zeros for padding)                        (B of GemmTile)
//   few pixels)
//
// With channels innermost, a pixel reads kernel_w · channels contiguous floats per image row.
// Unfolding copies vectors from offsets that are the same for all pixels. A vector may write past
// its end; the next one overwrites the excess. Results are in the order [kernel_h, kernel_w,
// channel], by blocks of channels, and are reordered at the end. Threads divide the pixels and add
// partial sums; with fewer pixels than taps they divide the taps instead.
#pragma once

#include <algorithm>
#include <vector>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/gemm_tile.hpp"
#include "kernels/common/cpu/partition.hpp"
#include "kernels/common/cpu/transpose.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/convolution/cpu/threaded_convolution.hpp"
#include "kernels/convolution/cpu/tiled/pixel_block.hpp"
#include "kernels/convolution/cpu/valid_range.hpp"

namespace stepladder::convolution::inline STEPLADDER_ISA {

class TiledBackwardWeights final : public ThreadedConvolution {
 public:
  TiledBackwardWeights(const Problem& problem, int threads)
      : p_(problem),
        threads_(threads),
        pixels_(p_.batch * p_.out_h() * p_.out_w()),
        taps_(p_.group_in() * p_.kernel_h * p_.kernel_w),
        partial_count_(pixels_ >= taps_ ? threads : 1) {
    const std::int64_t image = p_.out_h() * p_.out_w();
    grid_ = {.rows = p_.out_h(),
             .columns = p_.out_w(),
             .stride = p_.stride_h,
             .taps = p_.kernel_h,
             .block_pixels =
                 image > max_block_pixels ? max_block_pixels : max_block_pixels / image * image};
    local_columns_ = (grid_.window() - 1) * p_.stride_w + p_.kernel_w;

    // Channels of a local image: all, or as many panels as fit.
    const std::int64_t floats_of_channel = PixelBlock::max_local_rows(grid_) * local_columns_;
    const std::int64_t fitting =
        max_image_floats / floats_of_channel / Tile::columns * Tile::columns;
    channels_ = std::min(p_.group_in(), std::max(fitting, Tile::columns));
    for (std::int64_t channel = 0; channel < p_.group_in(); channel += channels_)
      add_panels(channel, std::min(channels_, p_.group_in() - channel));

    partials_ = aligned_array<float>(partial_count_ * p_.w_count());
    workspaces_.resize(static_cast<std::size_t>(threads));
    for (Workspace& workspace : workspaces_) {
      workspace.block.reserve(grid_);
      workspace.image = aligned_array<float>(
          static_cast<std::size_t>(floats_of_channel * channels_) + Vector::size);
      workspace.panel =
          panels_of_b(grid_.block_pixels * Tile::columns + std::int64_t{Vector::size});
      workspace.dy = aligned_array<float>(grid_.block_pixels * row_panels() * Tile::rows);
    }
  }

  void run_phase(int phase, int thread, const Operands& operands) override {
    if (phase == 0)
      add_products(thread, operands);
    else
      reduce_partials(thread, operands.w);
  }

 private:
  using Tile = GemmTile<>;

  static constexpr std::int64_t max_block_pixels = 384;
  static constexpr std::int64_t max_image_floats = 1 << 16;  // 256 KiB: a quarter of an L2 of 1 MiB

  // One vector of a pixel's row of the panel: its offset in the local image, relative to the first
  // float that the pixel reads, and in the row.
  struct VectorCopy {
    std::int64_t from, to;
  };

  struct Panel {
    std::int64_t channel, channels;  // of its block of channels
    std::int64_t first, taps;        // first tap, within the block; at most Tile::columns taps
    std::vector<VectorCopy> copies;
  };

  struct Workspace {
    PixelBlock block;
    AlignedArray<float> image;  // [local rows, local columns, channels]
    AlignedArray<float> panel;  // [pixels, Tile::columns]
    AlignedArray<float> dy;     // [row panels, pixels, Tile::rows]
  };

  std::int64_t row_panels() const { return ceil_div(p_.group_out(), Tile::rows); }

  // Adds the panels of a block of channels, whose taps are numbered [kernel_h, kernel_w, channel].
  void add_panels(std::int64_t channel, std::int64_t channels) {
    const std::int64_t row = p_.kernel_w * channels, taps = p_.kernel_h * row;
    for (std::int64_t first = 0; first < taps; first += Tile::columns) {
      Panel panel{channel, channels, first, std::min(Tile::columns, taps - first), {}};
      for (std::int64_t to = 0; to < panel.taps;) {
        const std::int64_t tap = first + to;
        panel.copies.push_back({tap / row * local_columns_ * channels + tap % row, to});
        to += std::min({static_cast<std::int64_t>(Vector::size), row - tap % row, panel.taps - to});
      }
      panels_.push_back(std::move(panel));
    }
  }

  // Adds one thread's products: of its pixels and all taps, or of all pixels and its taps.
  void add_products(int thread, const Operands& operands) {
    const bool by_pixels = partial_count_ == threads_;
    const Range pixels = partition(pixels_, by_pixels ? threads_ : 1, by_pixels ? thread : 0);
    const Range panels = partition(static_cast<std::int64_t>(panels_.size()),
                                   by_pixels ? 1 : threads_, by_pixels ? 0 : thread);
    float* partial = partials_.get() + (by_pixels ? thread * p_.w_count() : 0);
    if (pixels.begin == pixels.end) std::fill_n(partial, p_.w_count(), 0.0F);

    Workspace& workspace = workspaces_[static_cast<std::size_t>(thread)];
    for (std::int64_t group = 0; group < p_.groups; ++group)
      for (std::int64_t first = pixels.begin; first < pixels.end; first += grid_.block_pixels) {
        const std::int64_t count = std::min(grid_.block_pixels, pixels.end - first);
        workspace.block.set(grid_, first, count);
        transpose_dy(operands.y, group, count, workspace);
        for (std::int64_t i = panels.begin; i < panels.end; ++i) {
          const Panel& panel = panels_[static_cast<std::size_t>(i)];
          if (i == panels.begin || panel.first == 0)
            copy_image(operands.x, group, panel, workspace);
          unfold(panel, workspace);
          // [groups, group_out, channel blocks, kernel_h, kernel_w, channels of the block]
          float* c = partial + group * p_.group_out() * taps_ +
                     panel.channel * p_.kernel_h * p_.kernel_w + panel.first;
          for (std::int64_t row = 0; row < p_.group_out(); row += Tile::rows)
            Tile::multiply(count, workspace.dy.get() + row * count, workspace.panel.get(),
                           c + row * taps_, taps_, std::min(Tile::rows, p_.group_out() - row),
                           panel.taps, first > pixels.begin);
        }
      }
  }

  // Transposes dy of the block into panels [pixels, Tile::rows].
  void transpose_dy(const float* dy, std::int64_t group, std::int64_t count,
                    Workspace& workspace) const {
    const std::int64_t plane = p_.out_h() * p_.out_w();
    for (std::int64_t row = 0; row < p_.group_out(); row += Tile::rows) {
      float* to = workspace.dy.get() + row * count;
      // Rows of one image are contiguous in dy, as in the block.
      for (const PixelBlock::Segment *segment = workspace.block.segments().data(),
                                     *end = segment + workspace.block.segments().size();
           segment != end;) {
        const PixelBlock::Segment& first = *segment;
        std::int64_t length = 0;
        for (; segment != end && segment->image == first.image; ++segment)
          length += segment->length;
        const float* from = dy +
                            (first.image * p_.out_channels + group * p_.group_out() + row) * plane +
                            first.row * p_.out_w() + first.column;
        transpose(from, plane, to, Tile::rows, std::min(Tile::rows, p_.group_out() - row), length);
        to += length * Tile::rows;
      }
    }
  }

  // Copies the rows that the block reads, channels innermost, with their padding.
  void copy_image(const float* x, std::int64_t group, const Panel& panel,
                  Workspace& workspace) const {
    const std::int64_t plane = p_.height * p_.width, channels = panel.channels;
    for (const PixelBlock::Span& span : workspace.block.spans()) {
      const float* from =
          x + (span.image * p_.in_channels + group * p_.group_in() + panel.channel) * plane;
      float* to = workspace.image.get() + span.local_row * local_columns_ * channels;
      const std::int64_t rows = (span.rows - 1) * p_.stride_h + p_.kernel_h;
      const std::int64_t offset = span.column * p_.stride_w - p_.pad_w;
      const Range valid = valid_range(p_.width, local_columns_, 1, offset);
      for (std::int64_t i = 0; i < rows; ++i, to += local_columns_ * channels) {
        const std::int64_t row = span.row * p_.stride_h + i - p_.pad_h;
        if (i % p_.stride_h >= p_.kernel_h) continue;  // between taps, never read
        if (row < 0 || row >= p_.height || valid.begin >= valid.end) {
          std::fill_n(to, local_columns_ * channels, 0.0F);
          continue;
        }
        std::fill(to, to + valid.begin * channels, 0.0F);
        transpose(from + row * p_.width + offset + valid.begin, plane, to + valid.begin * channels,
                  channels, channels, valid.end - valid.begin);
        std::fill(to + valid.end * channels, to + local_columns_ * channels, 0.0F);
      }
    }
  }

  // Unfolds the local image into a panel [pixels, Tile::columns].
  void unfold(const Panel& panel, Workspace& workspace) const {
    const VectorCopy* const end = panel.copies.data() + panel.copies.size();
    const std::int64_t step = p_.stride_w * panel.channels;
    float* to = workspace.panel.get();
    for (const PixelBlock::Segment& segment : workspace.block.segments()) {
      const float* pixel = workspace.image.get() +
                           segment.local_row * local_columns_ * panel.channels +
                           segment.local_column * step;
      for (std::int64_t i = 0; i < segment.length; ++i, pixel += step, to += Tile::columns)
        for (const VectorCopy* copy = panel.copies.data(); copy != end; ++copy)
          Vector::load_unaligned(pixel + copy->from).store_unaligned(to + copy->to);
    }
  }

  // dw = the sum of the partials, in the order of dw. Threads divide the output channels.
  void reduce_partials(int thread, float* dw) const {
    const std::int64_t plane = p_.kernel_h * p_.kernel_w;
    const Range part = partition(p_.out_channels, threads_, thread);
    for (std::int64_t o = part.begin; o < part.end; ++o)
      for (std::int64_t channel = 0; channel < p_.group_in(); channel += channels_) {
        const std::int64_t channels = std::min(channels_, p_.group_in() - channel);
        const float* block =
            partials_.get() + o * taps_ + channel * plane;  // [kernel_h · kernel_w, channels]
        float* to = dw + o * taps_ + channel * plane;       // [channels, kernel_h · kernel_w]
        for (std::int64_t c = 0; c < channels; ++c)
          for (std::int64_t t = 0; t < plane; ++t) {
            const float* partial = block + t * channels + c;
            float sum = *partial;
            for (std::int64_t i = 1; i < partial_count_; ++i) sum += partial[i * p_.w_count()];
            to[c * plane + t] = sum;
          }
      }
  }

  Problem p_;
  int threads_;
  std::int64_t pixels_, taps_;  // of the batch; of one group
  std::int64_t partial_count_;  // one per thread, or one
  Grid grid_{};
  std::int64_t local_columns_ = 0, channels_ = 0;
  std::vector<Panel> panels_;
  AlignedArray<float> partials_;  // [partials, out_channels, taps]
  std::vector<Workspace> workspaces_;
};

}  // namespace stepladder::convolution::inline STEPLADDER_ISA

// forward and backward_data by Fourier transforms. Per block of tiles, on one thread:
//
//   source  -> half spectra                            columns of the tiles (spectra.hpp)
//   for each row of the half spectra:
//     spectra   [frequencies, tiles, 2, source channels]
//     products  [frequencies, tiles, 2, target channels]   one complex product per frequency
//     half spectra of the target                           the inverse transforms along the row
//   target                                             the inverse transforms along the columns
//
// The filters are transformed once. Products with their conjugates correlate, as forward does: the
// first outputs of a tile, as many as the tile has rows less kernel_h - 1, are free of wrapped
// values. Products with the spectra themselves convolve, as backward_data does: the last outputs
// are free (overlap-save).
#pragma once

#include <algorithm>
#include <vector>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/partition.hpp"
#include "kernels/common/cpu/transpose.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/convolution/cpu/fft/complex_tile.hpp"
#include "kernels/convolution/cpu/fft/spectra.hpp"
#include "kernels/convolution/cpu/threaded_correlation.hpp"

namespace stepladder::convolution::inline STEPLADDER_ISA {

class FftCorrelation final : public ThreadedCorrelation {
 public:
  FftCorrelation(const Problem& problem, const FftTile& tile, int threads)
      : ThreadedCorrelation(problem, threads),
        tile_(tile),
        transform_(tile),
        target_vectors_(ceil_div(target_channels_, lanes)),
        panels_(ceil_div(target_channels_, ComplexTile::columns)),
        target_h_(forward_ ? p_.out_h() : p_.height),
        target_w_(forward_ ? p_.out_w() : p_.width),
        outputs_h_(tile.rows - p_.kernel_h + 1),
        outputs_w_(tile.columns - p_.kernel_w + 1),
        grid_(p_.batch, ceil_div(target_h_, outputs_h_), ceil_div(target_w_, outputs_w_),
              p_.group_in() * p_.group_out(), threads),
        filters_(aligned_array<float>(p_.groups * group_filters())) {
    for (int thread = 0; thread < threads; ++thread) workspaces_.emplace_back(*this);
  }

 private:
  static constexpr std::int64_t lanes = TileTransform::lanes, pair = TileTransform::pair;
  static constexpr std::int64_t panel = ComplexTile::columns;
  static constexpr std::int64_t filters_at_once = 8;

  struct Workspace {
    explicit Workspace(const FftCorrelation& c)
        : source({.channels = c.source_channels_,
                  .height = c.forward_ ? c.p_.height : c.p_.out_h(),
                  .width = c.forward_ ? c.p_.width : c.p_.out_w(),
                  .top = c.forward_ ? -c.p_.pad_h : c.p_.pad_h - (c.p_.kernel_h - 1),
                  .left = c.forward_ ? -c.p_.pad_w : c.p_.pad_w - (c.p_.kernel_w - 1),
                  .rows = c.tile_.rows,
                  .columns = c.tile_.columns,
                  .step_h = c.outputs_h_,
                  .step_w = c.outputs_w_},
                 c.tile_, c.grid_),
          image_rows(c.grid_.block_tiles() / c.grid_.columns()),
          half(aligned_array<float>(source.half_size(image_rows))),
          spectra(aligned_array<float>(source.matrices_size())),
          product_pitch(c.grid_.block_tiles() * 2 * c.panels_ * panel + lanes),
          products(aligned_array<float>(c.transform_.frequencies(0) * product_pitch)),
          target_half(
              aligned_array<float>(c.grid_.block_tiles() * c.target_vectors_ * c.target_tile())),
          window(aligned_array<float>(c.grid_.block_rows() * c.outputs_h_ * c.grid_.columns() *
                                      c.outputs_w_ * lanes)),
          filter(aligned_array<float>(c.tile_.rows * c.p_.kernel_w * lanes)),
          filter_half(aligned_array<float>(c.filter_half_size())) {
      std::fill_n(filter.get(), c.tile_.rows * c.p_.kernel_w * lanes, 0.0F);
      std::fill_n(filter_half.get(), c.filter_half_size(), 0.0F);
    }

    Spectra source;
    std::int64_t image_rows;          // rows of tiles in a block, of all its images
    AlignedArray<float> half;         // of the source
    AlignedArray<float> spectra;      // [frequencies of a row, tiles, 2, source channels]
    std::int64_t product_pitch;       // floats of one frequency, padded as in Spectra
    AlignedArray<float> products;     // [frequencies of a row, tiles, 2, target channels]
    AlignedArray<float> target_half;  // [tiles, channel vectors, rows / 2, outputs_w, 2, lanes]
    AlignedArray<float> window;       // [rows, columns, lanes] of the target
    AlignedArray<float> filter;       // [tile.rows, kernel_w, lanes]; zeros below kernel_h
    // [rows / 2, filters_at_once, tile.columns, 2, lanes]; zeros behind kernel_w
    AlignedArray<float> filter_half;
  };

  // Floats of the half spectrum of one tile of the target, for one vector of channels.
  std::int64_t target_tile() const { return transform_.half_rows() * outputs_w_ * pair; }
  // Floats of a row of the half spectrum of a filter, and of filters_at_once half spectra.
  std::int64_t half_row() const { return tile_.columns * pair + lanes; }
  std::int64_t filter_half_size() const {
    return transform_.half_rows() * filters_at_once * half_row();
  }
  // Floats of the filters of one panel at one frequency, of all panels at one frequency (padded as
  // in Spectra), and of all filters of a group.
  std::int64_t panel_filters() const { return source_channels_ * 2 * panel; }
  std::int64_t filter_pitch() const { return panels_ * panel_filters() + lanes; }
  std::int64_t group_filters() const { return transform_.frequencies() * filter_pitch(); }

  // Transforms one thread's part of the filters: one vector of target channels and some source
  // channels at a time. Row by row, because all frequencies of one filter are in different pages.
  void pack(int thread, const float* filters) override {
    Workspace& work = workspaces_[std::size_t(thread)];
    const std::int64_t taps = p_.kernel_h * p_.kernel_w, channel_filters = p_.group_in() * taps;
    const std::int64_t target_pitch = forward_ ? channel_filters : taps;
    const std::int64_t source_pitch = forward_ ? taps : channel_filters;
    const std::int64_t chunks = ceil_div(source_channels_, filters_at_once);
    const Range part = partition(p_.groups * target_vectors_ * chunks, threads_, thread);
    for (std::int64_t item = part.begin; item < part.end; ++item) {
      const Range channels = partition(source_channels_, chunks, item % chunks);
      const std::int64_t index = item / chunks, v = index % target_vectors_ * lanes;
      const std::int64_t group = index / target_vectors_;
      const float* from = filters + group * p_.group_out() * channel_filters + v * target_pitch;
      for (std::int64_t c = channels.begin; c < channels.end; ++c) {
        transpose(from + c * source_pitch, target_pitch, work.filter.get(), lanes,
                  std::min(lanes, target_channels_ - v), taps);
        for (std::int64_t s = 0; s < p_.kernel_w; ++s)
          transform_.column(work.filter.get() + s * lanes, p_.kernel_w * lanes,
                            work.filter_half.get() + (c - channels.begin) * half_row() + s * pair,
                            filters_at_once * half_row());
      }
      float* to =
          filters_.get() + group * group_filters() + v / panel * panel_filters() + v % panel;
      const float* half = work.filter_half.get();
      for (std::int64_t row = 0; row < transform_.half_rows(); ++row)
        for (std::int64_t c = 0; c < filters_at_once; ++c, half += half_row())
          if (c < channels.end - channels.begin)
            transform_.row(row, half,
                           to + transform_.first_frequency(row) * filter_pitch() +
                               (channels.begin + c) * 2 * panel,
                           panel, filter_pitch());
    }
  }

  void correlate(int thread, const float* source, float* target) override {
    Workspace& work = workspaces_[std::size_t(thread)];
    const Range part = partition(p_.groups * grid_.blocks(), threads_, thread);
    for (std::int64_t item = part.begin; item < part.end; ++item) {
      const std::int64_t group = item / grid_.blocks();
      const TileGrid::Block block = grid_.block(item % grid_.blocks());
      transform_columns(work, block, group, source);
      for (std::int64_t row = 0; row < transform_.half_rows(); ++row) {
        transform_row(work, block, row);
        multiply(work, block, row, filters_.get() + group * group_filters());
        inverse_row(work, block, row);
      }
      for (std::int64_t n = 0; n < block.images; ++n)
        for (std::int64_t v = 0; v < target_vectors_; ++v)
          write(work, block, n, v,
                target +
                    image(block.first_image + n, group, target_channels_) * target_h_ * target_w_);
    }
  }

  // The first channel of a group in an image, counted over the batch.
  std::int64_t image(std::int64_t n, std::int64_t group, std::int64_t channels) const {
    return (n * p_.groups + group) * channels;
  }

  void transform_columns(Workspace& work, const TileGrid::Block& block, std::int64_t group,
                         const float* source) const {
    const std::int64_t plane = forward_ ? p_.height * p_.width : p_.out_h() * p_.out_w();
    for (std::int64_t n = 0; n < block.images; ++n)
      for (std::int64_t v = 0; v < work.source.vectors(); ++v)
        for (std::int64_t i = 0; i < block.rows; ++i)
          work.source.columns(
              source + (image(block.first_image + n, group, source_channels_) + v * lanes) * plane,
              std::min(lanes, source_channels_ - v * lanes), block.first_row + i,
              work.half.get() +
                  ((n * block.rows + i) * work.source.vectors() + v) * work.source.line(),
              work.source.half_row(work.image_rows));
  }

  void transform_row(Workspace& work, const TileGrid::Block& block, std::int64_t row) const {
    const float* half = work.half.get() + row * work.source.half_row(work.image_rows);
    for (std::int64_t i = 0; i < block.images * block.rows; ++i)
      for (std::int64_t v = 0; v < work.source.vectors(); ++v, half += work.source.line())
        work.source.rows(
            row, half,
            work.spectra.get() + i * grid_.columns() * 2 * work.source.row() + v * lanes);
  }

  // products[frequency] = spectra[frequency] · filters[frequency], or · their conjugates.
  void multiply(Workspace& work, const TileGrid::Block& block, std::int64_t row,
                const float* filters) const {
    const std::int64_t tiles = block.images * block.rows * grid_.columns();
    const std::int64_t row_tiles = ceil_div(tiles, ComplexTile::rows), width = panels_ * panel;
    const auto product = forward_ ? ComplexTile::multiply<true> : ComplexTile::multiply<false>;
    for (std::int64_t f = 0; f < transform_.frequencies(row); ++f) {
      const float* b = filters + (transform_.first_frequency(row) + f) * filter_pitch();
      for (std::int64_t j = 0; j < panels_; ++j, b += panel_filters())
        for (std::int64_t i = 0; i < row_tiles; ++i) {
          const Range rows = partition(tiles, row_tiles, i);
          product(source_channels_,
                  {.at = work.spectra.get() + f * work.source.pitch() +
                         rows.begin * 2 * work.source.row(),
                   .row = 2 * work.source.row(),
                   .column = 1,
                   .imaginary = work.source.row()},
                  {.at = b, .row = 2 * panel, .imaginary = panel},
                  {.at = work.products.get() + f * work.product_pitch + rows.begin * 2 * width +
                         j * panel,
                   .row = 2 * width,
                   .imaginary = width},
                  rows.end - rows.begin, std::min(panel, target_vectors_ * lanes - j * panel),
                  false);
        }
    }
  }

  // Transforms the products of one row back and keeps the columns that are free of wrapped values.
  void inverse_row(Workspace& work, const TileGrid::Block& block, std::int64_t row) const {
    alignas(cache_line) float line[FftTile::most * pair];
    const std::int64_t tiles = block.images * block.rows * grid_.columns();
    const std::int64_t width = panels_ * panel, first = forward_ ? 0 : p_.kernel_w - 1;
    for (std::int64_t i = 0; i < tiles; ++i)
      for (std::int64_t v = 0; v < target_vectors_; ++v) {
        transform_.inverse_row(row, work.products.get() + i * 2 * width + v * lanes, width,
                               work.product_pitch, line);
        std::copy_n(line + first * pair, outputs_w_ * pair,
                    work.target_half.get() + (i * target_vectors_ + v) * target_tile() +
                        row * outputs_w_ * pair);
      }
  }

  // Writes vector v of channels of image n of the block. target: the group's channels.
  void write(Workspace& work, const TileGrid::Block& block, std::int64_t n, std::int64_t v,
             float* target) const {
    alignas(cache_line) float column[FftTile::most * lanes];
    const Vector scale(transform_.scale());
    const std::int64_t window_row = grid_.columns() * outputs_w_ * lanes;
    const std::int64_t skipped = forward_ ? 0 : p_.kernel_h - 1;
    for (std::int64_t i = 0; i < block.rows; ++i)
      for (std::int64_t j = 0; j < grid_.columns(); ++j) {
        const std::int64_t index = (n * block.rows + i) * grid_.columns() + j;
        const float* half = work.target_half.get() + (index * target_vectors_ + v) * target_tile();
        float* to = work.window.get() + i * outputs_h_ * window_row + j * outputs_w_ * lanes;
        for (std::int64_t b = 0; b < outputs_w_; ++b, to += lanes) {
          transform_.inverse_column(half + b * pair, outputs_w_ * pair, column, lanes);
          for (std::int64_t a = 0; a < outputs_h_; ++a)
            (scale * Vector::load_aligned(column + (skipped + a) * lanes))
                .store_aligned(to + a * window_row);
        }
      }
    const std::int64_t first = block.first_row * outputs_h_;
    const std::int64_t last = std::min(target_h_, first + block.rows * outputs_h_);
    for (std::int64_t i = first; i < last; ++i)
      transpose(work.window.get() + (i - first) * window_row, lanes,
                target + (v * lanes * target_h_ + i) * target_w_, target_h_ * target_w_, target_w_,
                std::min(lanes, target_channels_ - v * lanes));
  }

  FftTile tile_;
  TileTransform transform_;
  std::int64_t target_vectors_, panels_;  // of target channels
  std::int64_t target_h_, target_w_;
  std::int64_t outputs_h_, outputs_w_;  // of a tile
  TileGrid grid_;
  AlignedArray<float> filters_;  // [groups, frequencies, panels, source channels, 2, panel]
  std::vector<Workspace> workspaces_;
};

}  // namespace stepladder::convolution::inline STEPLADDER_ISA

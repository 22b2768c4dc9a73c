// backward_weights by Fourier transforms: dw is the correlation of x with dy. A tile of dy replaces
// the filter, and the first kernel_h x kernel_w values of a tile of results are the taps. The three
// phases are:
//
//   x, dy -> half spectra                             columns of all tiles (spectra.hpp)
//   for each row of the half spectra, by block of tiles:
//     spectra of x   [frequencies, tiles, 2, in channels]
//     spectra of dy  [frequencies, tiles, 2, out channels]
//     sums           [frequencies, in channels, 2, out channels]   += one product per frequency
//     half spectra of dw                              the inverse transforms along the row
//   dw                                                the inverse transforms along the columns
//
// Threads divide the rows of tiles, the rows of the half spectra, the pairs of channels.
#pragma once

#include <algorithm>
#include <vector>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/partition.hpp"
#include "kernels/common/cpu/transpose.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/convolution/cpu/fft/complex_tile.hpp"
#include "kernels/convolution/cpu/fft/spectra.hpp"
#include "kernels/convolution/cpu/threaded_convolution.hpp"

namespace stepladder::convolution::inline STEPLADDER_ISA {

class FftBackwardWeights final : public ThreadedConvolution {
 public:
  FftBackwardWeights(const Problem& problem, const FftTile& tile, int threads)
      : ThreadedConvolution(3),
        p_(problem),
        tile_(tile),
        transform_(tile),
        threads_(threads),
        pixels_h_(tile.rows - p_.kernel_h + 1),
        pixels_w_(tile.columns - p_.kernel_w + 1),
        grid_(p_.batch, ceil_div(p_.out_h(), pixels_h_), ceil_div(p_.out_w(), pixels_w_),
              p_.group_in() * p_.group_out(), threads),
        image_rows_(p_.groups * p_.batch * rows_per_image()),
        out_vectors_(ceil_div(p_.group_out(), lanes)) {
    for (int thread = 0; thread < threads; ++thread) workspaces_.emplace_back(*this);
    const Spectra &x = workspaces_[0].x, &dy = workspaces_[0].dy;
    parts_ = std::min(x.vectors(), ceil_div(threads, p_.groups * transform_.half_rows()));
    x_half_ = zeros(x.half_size(image_rows_));
    dy_half_ = zeros(dy.half_size(image_rows_));
    dw_half_ = aligned_array<float>(p_.groups * p_.group_in() * out_vectors_ * filter_size());
  }

  void run_phase(int phase, int thread, const Operands& operands) override {
    Workspace& work = workspaces_[std::size_t(thread)];
    if (phase == 0) {
      transform_columns(work.x, thread, operands.x, p_.group_in(), p_.height * p_.width,
                        x_half_.get());
      transform_columns(work.dy, thread, operands.y, p_.group_out(), p_.out_h() * p_.out_w(),
                        dy_half_.get());
    } else if (phase == 1) {
      const Range part = partition(p_.groups * transform_.half_rows() * parts_, threads_, thread);
      for (std::int64_t item = part.begin; item < part.end; ++item) {
        const std::int64_t row = item / parts_ % transform_.half_rows();
        const Range vectors = partition(work.x.vectors(), parts_, item % parts_);
        const Range channels = {vectors.begin * lanes,
                                std::min(vectors.end * lanes, p_.group_in())};
        sum_row(work, item / parts_ / transform_.half_rows(), row, channels);
      }
    } else {
      write(thread, operands.w);
    }
  }

 private:
  static constexpr std::int64_t lanes = TileTransform::lanes, pair = TileTransform::pair;

  struct Workspace {
    explicit Workspace(const FftBackwardWeights& g)
        : x({.channels = g.p_.group_in(),
             .height = g.p_.height,
             .width = g.p_.width,
             .top = -g.p_.pad_h,
             .left = -g.p_.pad_w,
             .rows = g.tile_.rows,
             .columns = g.tile_.columns,
             .step_h = g.pixels_h_,
             .step_w = g.pixels_w_},
            g.tile_, g.grid_),
          dy({.channels = g.p_.group_out(),
              .height = g.p_.out_h(),
              .width = g.p_.out_w(),
              .top = 0,
              .left = 0,
              .rows = g.pixels_h_,
              .columns = g.pixels_w_,
              .step_h = g.pixels_h_,
              .step_w = g.pixels_w_},
             g.tile_, g.grid_),
          x_spectra(aligned_array<float>(x.matrices_size())),
          dy_spectra(aligned_array<float>(dy.matrices_size())),
          sum_pitch(g.p_.group_in() * 2 * dy.row() + lanes),
          sums(aligned_array<float>(g.transform_.frequencies(0) * sum_pitch)),
          filter(aligned_array<float>(g.p_.kernel_h * g.p_.kernel_w * lanes)) {}

    Spectra x, dy;
    AlignedArray<float> x_spectra, dy_spectra;  // of one row and one block of tiles
    std::int64_t sum_pitch;                     // floats of one frequency, padded as in Spectra
    AlignedArray<float> sums;    // [frequencies of a row, in channels, 2, out channels]
    AlignedArray<float> filter;  // [kernel_h, kernel_w, lanes] of dw
  };

  static AlignedArray<float> zeros(std::int64_t count) {
    AlignedArray<float> array = aligned_array<float>(count);
    std::fill_n(array.get(), count, 0.0F);
    return array;
  }

  std::int64_t rows_per_image() const { return ceil_div(p_.out_h(), pixels_h_); }  // of tiles
  // Floats of the half spectrum of a filter, for one vector of output channels.
  std::int64_t filter_size() const { return transform_.half_rows() * p_.kernel_w * pair; }

  // Transforms the columns of one thread's part of the rows of tiles, of all groups and images.
  void transform_columns(Spectra& spectra, int thread, const float* images, std::int64_t channels,
                         std::int64_t plane, float* half) const {
    const Range part = partition(image_rows_ * spectra.vectors(), threads_, thread);
    for (std::int64_t item = part.begin; item < part.end; ++item) {
      const std::int64_t v = item % spectra.vectors() * lanes, index = item / spectra.vectors();
      const std::int64_t image = index / rows_per_image();  // [groups, batch]
      const std::int64_t group = image / p_.batch, n = image % p_.batch;
      spectra.columns(images + ((n * p_.groups + group) * channels + v) * plane,
                      std::min(lanes, channels - v), index % rows_per_image(),
                      half + item * spectra.line(), spectra.half_row(image_rows_));
    }
  }

  // Computes one row of the half spectra of dw for a range of input channels of a group.
  void sum_row(Workspace& work, std::int64_t group, std::int64_t row, const Range& channels) const {
    for (std::int64_t index = 0; index < grid_.blocks(); ++index) {
      const TileGrid::Block block = grid_.block(index);
      const std::int64_t vectors = ceil_div(channels.end - channels.begin, lanes);
      transform_rows(work.x, block, group, row, x_half_.get(), channels.begin / lanes, vectors,
                     work.x_spectra.get());
      transform_rows(work.dy, block, group, row, dy_half_.get(), 0, out_vectors_,
                     work.dy_spectra.get());
      add_products(work, block, row, channels, index > 0);
    }
    alignas(cache_line) float line[FftTile::most * pair];
    for (std::int64_t c = channels.begin; c < channels.end; ++c)
      for (std::int64_t v = 0; v < out_vectors_; ++v) {
        transform_.inverse_row(row, work.sums.get() + c * 2 * work.dy.row() + v * lanes,
                               work.dy.row(), work.sum_pitch, line);
        std::copy_n(line, p_.kernel_w * pair,
                    dw_half_.get() +
                        ((group * p_.group_in() + c) * out_vectors_ + v) * filter_size() +
                        row * p_.kernel_w * pair);
      }
  }

  // Transforms row `row` of a block of tiles and a range of channel vectors.
  void transform_rows(const Spectra& spectra, const TileGrid::Block& block, std::int64_t group,
                      std::int64_t row, const float* half, std::int64_t first, std::int64_t vectors,
                      float* matrices) const {
    half += row * spectra.half_row(image_rows_);
    for (std::int64_t n = 0; n < block.images; ++n)
      for (std::int64_t i = 0; i < block.rows;
           ++i, matrices += grid_.columns() * 2 * spectra.row()) {
        const std::int64_t image_row =
            (group * p_.batch + block.first_image + n) * rows_per_image() + block.first_row + i;
        for (std::int64_t v = first; v < first + vectors; ++v)
          spectra.rows(row, half + (image_row * spectra.vectors() + v) * spectra.line(),
                       matrices + v * lanes);
      }
  }

  // sums[frequency] (+)= spectra of x transposed · conjugate of the spectra of dy
  void add_products(Workspace& work, const TileGrid::Block& block, std::int64_t row,
                    const Range& channels, bool accumulate) const {
    const std::int64_t tiles = block.images * block.rows * grid_.columns();
    const std::int64_t count = channels.end - channels.begin, width = work.dy.row();
    const std::int64_t row_tiles = ceil_div(count, ComplexTile::rows);
    for (std::int64_t f = 0; f < transform_.frequencies(row); ++f)
      for (std::int64_t j = 0; j < width; j += ComplexTile::columns)
        for (std::int64_t i = 0; i < row_tiles; ++i) {
          const Range part = partition(count, row_tiles, i);
          const std::int64_t c = channels.begin + part.begin;
          ComplexTile::multiply<true>(
              tiles,
              {.at = work.x_spectra.get() + f * work.x.pitch() + c,
               .row = 1,
               .column = 2 * work.x.row(),
               .imaginary = work.x.row()},
              {.at = work.dy_spectra.get() + f * work.dy.pitch() + j,
               .row = 2 * width,
               .imaginary = width},
              {.at = work.sums.get() + f * work.sum_pitch + c * 2 * width + j,
               .row = 2 * width,
               .imaginary = width},
              part.end - part.begin, std::min(ComplexTile::columns, width - j), accumulate);
        }
  }

  // Computes one thread's part of dw from its half spectra.
  void write(int thread, float* dw) {
    alignas(cache_line) float column[FftTile::most * lanes];
    float* filter = workspaces_[std::size_t(thread)].filter.get();
    const Vector scale(transform_.scale());
    const std::int64_t taps = p_.kernel_h * p_.kernel_w, filters = p_.group_in() * taps;
    const Range part = partition(p_.groups * p_.group_in() * out_vectors_, threads_, thread);
    for (std::int64_t item = part.begin; item < part.end; ++item) {
      const std::int64_t v = item % out_vectors_ * lanes, index = item / out_vectors_;
      const std::int64_t c = index % p_.group_in(), group = index / p_.group_in();
      const float* half = dw_half_.get() + item * filter_size();
      for (std::int64_t s = 0; s < p_.kernel_w; ++s) {
        transform_.inverse_column(half + s * pair, p_.kernel_w * pair, column, lanes);
        for (std::int64_t r = 0; r < p_.kernel_h; ++r)
          (scale * Vector::load_aligned(column + r * lanes))
              .store_aligned(filter + (r * p_.kernel_w + s) * lanes);
      }
      transpose(filter, lanes, dw + (group * p_.group_out() + v) * filters + c * taps, filters,
                taps, std::min(lanes, p_.group_out() - v));
    }
  }

  Problem p_;
  FftTile tile_;
  TileTransform transform_;
  int threads_;
  std::int64_t pixels_h_, pixels_w_;  // of dy in a tile
  TileGrid grid_;
  std::int64_t image_rows_;   // rows of tiles of all groups and images
  std::int64_t out_vectors_;  // vectors of a group's output channels
  std::int64_t parts_;        // of the input channels, where there are more threads than rows
  AlignedArray<float> x_half_,
      dy_half_;                  // [rows / 2, image rows, channel vectors, columns, 2, lanes]
  AlignedArray<float> dw_half_;  // [groups, in channels, vectors, rows / 2, kernel_w, 2, lanes]
  std::vector<Workspace> workspaces_;
};

}  // namespace stepladder::convolution::inline STEPLADDER_ISA

// y = the correlation of x with the filters w, with the switches of the lattice (lattice.cpp).
#pragma once

#include <algorithm>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/partition.hpp"
#include "kernels/common/cpu/product.hpp"
#include "kernels/convolution/convolution.hpp"
#include "kernels/convolution/cpu/valid_range.hpp"
#include "kernels/convolution/lattice/image.hpp"

namespace stepladder::convolution::inline STEPLADDER_ISA {

template <bool unfolding, bool vectors, bool tile, bool packing>
class Correlation {
  using Product = stepladder::Product<vectors, tile, packing>;
  using Lanes = typename Product::Lanes;
  static constexpr std::int64_t lanes = Product::lanes;
  static constexpr bool is_padded = !unfolding && packing;  // whether the image is
  static constexpr std::int64_t tile_channels = 8;          // of a tile without unfolding
  // Panels of about this many pixels are unfolded and multiplied before the next: they stay in L2.
  static constexpr std::int64_t block_pixels = 256;

 public:
  Correlation(const Problem& p, int threads)
      : p_(p),
        threads_(static_cast<int>(std::min<std::int64_t>(threads, p.batch))),
        pixels_(p.out_h() * p.out_w()),
        taps_(p.group_in() * p.kernel_h * p.kernel_w),
        block_rows_(Product::has_panels ? std::min(p.out_h(), ceil_div(block_pixels, p.out_w()))
                                        : p.out_h()),
        image_(p),
        workspace_size_(workspace()),
        workspace_(aligned_array<float>(static_cast<std::size_t>(workspace_size_ * threads_))),
        filters_(aligned_array<float>(static_cast<std::size_t>(
            is_padded && tile ? p.groups * channel_tiles() * taps_ * tile_channels : 0))) {
    // What pads panels and images is read.
    std::fill_n(workspace_.get(), workspace_size_ * threads_, 0.0F);
    // Outputs that read no padding: whole tiles of them need no tests.
    inside_.begin = std::min(p.out_w(), ceil_div(image_.pad_w, p.stride_w));
    const std::int64_t last_start = image_.width + image_.pad_w - p.kernel_w;
    inside_.end = std::max(inside_.begin,
                           last_start < 0 ? 0 : std::min(p.out_w(), last_start / p.stride_w + 1));
  }

  void run(const Operands& o) {
    if constexpr (is_padded && tile) pack_filters(o.w);
#pragma omp parallel for num_threads(threads_) schedule(static, 1) if (threads_ > 1)
    for (int thread = 0; thread < threads_; ++thread) {
      const Range images = partition(p_.batch, threads_, thread);
      for (std::int64_t n = images.begin; n < images.end; ++n)
        for (std::int64_t g = 0; g < p_.groups; ++g)
          convolve(o.x + (n * p_.groups + g) * p_.group_in() * p_.height * p_.width,
                   o.w + g * p_.group_out() * taps_,
                   o.y + (n * p_.groups + g) * p_.group_out() * pixels_, g,
                   workspace_.get() + thread * workspace_size_);
    }
  }

 private:
  std::int64_t channel_tiles() const { return ceil_div(p_.group_out(), tile_channels); }
  std::int64_t workspace() const {
    if (unfolding)
      return taps_ * (Product::has_panels ? Product::whole_panels(block_rows_ * p_.out_w())
                                          : pixels_ + line_floats);
    return is_padded ? p_.group_in() * image_.height * image_.width + line_floats : 0;
  }

  // One group of an image: x [group_in, height, width], w [group_out, taps], y [group_out, pixels]
  void convolve(const float* x, const float* w, float* y, std::int64_t g, float* work) const {
    if constexpr (unfolding) {
      for (Range block{0, 0}; block.end < p_.out_h();) {
        block = {block.end, std::min(p_.out_h(), block.end + block_rows_)};
        unfold(x, block, work);
        Product::multiply(w, taps_, 1, work, pixels_ + line_floats, y + block.begin * p_.out_w(),
                          pixels_, p_.group_out(), (block.end - block.begin) * p_.out_w(), taps_,
                          false);
      }
      return;
    }
    x = image_.read(p_, x, work);
    if constexpr (!tile)
      for (std::int64_t o = 0; o < p_.group_out(); ++o) add_rows(x, w + o * taps_, y + o * pixels_);
    else
      for (std::int64_t t = 0; t < channel_tiles(); ++t) {
        const std::int64_t o = t * tile_channels, m = std::min(tile_channels, p_.group_out() - o);
        const float* filters =
            packing ? filters_.get() + (g * channel_tiles() + t) * taps_ * tile_channels
                    : w + o * taps_;
        for (std::int64_t row = 0; row < p_.out_h(); ++row) {
          float* to = y + o * pixels_ + row * p_.out_w();
          if (m == tile_channels)
            tile_row<tile_channels>(x, filters, to, row);
          else
            for (std::int64_t i = 0; i < m; ++i)
              tile_row<1>(x, filters + i * (packing ? 1 : taps_), to + i * pixels_, row);
        }
      }
  }

  // Calls visit(r, s, tap, rows and columns of the outputs that read the image through it).
  template <class Visit>
  void for_each_tap(const Visit& visit) const {
    for (std::int64_t r = 0; r < p_.kernel_h; ++r)
      for (std::int64_t s = 0; s < p_.kernel_w; ++s)
        visit(r - image_.pad_h, s - image_.pad_w, r * p_.kernel_w + s,
              valid_range(image_.height, p_.out_h(), p_.stride_h, r - image_.pad_h),
              valid_range(image_.width, p_.out_w(), p_.stride_w, s - image_.pad_w));
  }

  // y [pixels] of one channel, a row for each product with a weight.
  void add_rows(const float* x, const float* w, float* y) const {
    std::fill_n(y, pixels_, 0.0F);
    for (std::int64_t i = 0; i < p_.group_in(); ++i)
      for_each_tap(
          [&](std::int64_t r, std::int64_t s, std::int64_t tap, Range rows, Range columns) {
            const float weight = w[i * p_.kernel_h * p_.kernel_w + tap];
            const std::int64_t count = columns.end - columns.begin;
            for (std::int64_t row = rows.begin; row < rows.end && count > 0; ++row) {
              const float* from = x + (i * image_.height + row * p_.stride_h + r) * image_.width +
                                  columns.begin * p_.stride_w + s;
              float* to = y + row * p_.out_w() + columns.begin;
              if (p_.stride_w == 1)
                Product::add_multiple(weight, from, to, count);
              else
                for (std::int64_t q = 0; q < count; ++q) to[q] += weight * from[q * p_.stride_w];
            }
          });
  }

  // One row of y for `Height` channels, in tiles of up to three vectors.
  template <std::int64_t Height>
  void tile_row(const float* x, const float* w, float* y, std::int64_t row) const {
    const std::int64_t first = std::max<std::int64_t>(0, image_.pad_h - row * p_.stride_h);
    const Range rows{first,
                     std::min(p_.kernel_h, image_.height + image_.pad_h - row * p_.stride_h)};
    x += (row * p_.stride_h - image_.pad_h) * image_.width - image_.pad_w;
    for (std::int64_t q = 0; q < p_.out_w();) {
      const bool inside = q >= inside_.begin && q < inside_.end;
      const std::int64_t left = inside ? inside_.end - q : 1;
      const float* from = x + q * p_.stride_w;
      if (inside && p_.stride_w == 1 && left >= 3 * lanes)
        multiply_tile<Lanes, Height, 3>(from, w, rows, {0, p_.kernel_w}, y + q, lanes);
      else if (inside && p_.stride_w == 1 && left >= 2 * lanes)
        multiply_tile<Lanes, Height, 2>(from, w, rows, {0, p_.kernel_w}, y + q, lanes);
      else if (inside && p_.stride_w == 1)
        multiply_tile<Lanes, Height, 1>(from, w, rows, {0, p_.kernel_w}, y + q,
                                        std::min(lanes, left));
      else {
        const std::int64_t begin = std::max<std::int64_t>(0, image_.pad_w - q * p_.stride_w);
        multiply_tile<Scalar, Height, 1>(
            from, w, rows,
            {begin, std::min(p_.kernel_w, image_.width + image_.pad_w - q * p_.stride_w)}, y + q,
            1);
      }
      const std::int64_t vectors_of_tile = std::clamp<std::int64_t>(left / lanes, 1, 3);
      q += inside && p_.stride_w == 1 ? std::min(left, vectors_of_tile * lanes) : 1;
    }
  }

  // y[o, q] = sum over the taps in rows and columns, for Height channels and Width vectors of
  // pixels, of which the last has `rest`.
  template <class V, std::int64_t Height, std::int64_t Width>
  void multiply_tile(const float* x, const float* w, Range rows, Range columns, float* y,
                     std::int64_t rest) const {
    constexpr std::int64_t size = V::size;
    V acc[Height][Width];
    for (std::int64_t m = 0; m < Height; ++m)
      for (std::int64_t v = 0; v < Width; ++v) acc[m][v] = V(0.0F);
    for (std::int64_t i = 0; i < p_.group_in(); ++i)
      for (std::int64_t r = rows.begin; r < rows.end; ++r)
        for (std::int64_t s = columns.begin; s < columns.end; ++s) {
          const float* from = x + (i * image_.height + r) * image_.width + s;
          V pixels[Width];
          for (std::int64_t v = 0; v + 1 < Width; ++v)
            pixels[v] = V::load_unaligned(from + v * size);
          pixels[Width - 1] = rest == size ? V(V::load_unaligned(from + (Width - 1) * size))
                                           : load_partial<V>(from + (Width - 1) * size, rest);
          const std::int64_t tap = (i * p_.kernel_h + r) * p_.kernel_w + s;
          for (std::int64_t m = 0; m < Height; ++m) {
            const V weight(packing ? w[tap * tile_channels + m] : w[m * taps_ + tap]);
            for (std::int64_t v = 0; v < Width; ++v) acc[m][v] = fma(weight, pixels[v], acc[m][v]);
          }
        }
    for (std::int64_t m = 0; m < Height; ++m) {
      for (std::int64_t v = 0; v + 1 < Width; ++v)
        acc[m][v].store_unaligned(y + m * pixels_ + v * size);
      store_partial(y + m * pixels_ + (Width - 1) * size, acc[m][Width - 1], rest);
    }
  }

  // [groups, channel_tiles, taps, tile_channels]
  void pack_filters(const float* w) {
    for (std::int64_t g = 0; g < p_.groups; ++g)
      for (std::int64_t o = 0; o < p_.group_out(); ++o) {
        float* to = filters_.get() +
                    (g * channel_tiles() + o / tile_channels) * taps_ * tile_channels +
                    o % tile_channels;
        for (std::int64_t tap = 0; tap < taps_; ++tap)
          to[tap * tile_channels] = w[(g * p_.group_out() + o) * taps_ + tap];
      }
  }

  // The pixels of rows `block` of y, into rows [taps, pixels + line_floats], or into panels.
  void unfold(const float* x, Range block, float* columns) const {
    const std::int64_t out_w = p_.out_w();
    for (std::int64_t i = 0; i < p_.group_in(); ++i)
      for_each_tap([&](std::int64_t r, std::int64_t s, std::int64_t tap, Range rows, Range valid) {
        const std::int64_t l = i * p_.kernel_h * p_.kernel_w + tap;
        for (std::int64_t row = block.begin; row < block.end; ++row) {
          const float* from = x + (i * image_.height + row * p_.stride_h + r) * image_.width + s;
          const Range inside = row >= rows.begin && row < rows.end ? valid : Range{0, 0};
          for (std::int64_t q = 0; q < out_w;) {
            const std::int64_t pixel = (row - block.begin) * out_w + q;
            const Range part{q, Product::has_panels
                                    ? std::min(out_w, q + Product::panel - pixel % Product::panel)
                                    : out_w};
            unfold_row(from, inside, part, columns + place_of(l, pixel));
            q = part.end;
          }
        }
      });
  }
  // to[0], … = pixels `part` of a row; those outside `inside` are padding.
  void unfold_row(const float* from, Range inside, Range part, float* to) const {
    inside = {std::clamp(inside.begin, part.begin, part.end),
              std::clamp(inside.end, part.begin, part.end)};
    std::int64_t q = part.begin;
    for (; q < inside.begin; ++q) *to++ = 0;
    if (vectors && p_.stride_w == 1) {
      for (; q + lanes <= inside.end; q += lanes, to += lanes)
        Lanes::load_unaligned(from + q).store_unaligned(to);
      const std::int64_t rest = inside.end - q;
      store_partial(to, load_partial<Lanes>(from + q, rest), rest);
      q += rest, to += rest;
    }
    for (; q < inside.end; ++q) *to++ = from[q * p_.stride_w];
    for (; q < part.end; ++q) *to++ = 0;
  }
  std::int64_t place_of(std::int64_t l, std::int64_t pixel) const {
    if (Product::has_panels)
      return pixel / Product::panel * taps_ * Product::panel + l * Product::panel +
             pixel % Product::panel;
    return l * (pixels_ + line_floats) + pixel;
  }

  Problem p_;
  int threads_;
  std::int64_t pixels_, taps_;
  std::int64_t block_rows_;  // of y, whose pixels are unfolded at once
  Image<is_padded> image_;
  std::int64_t workspace_size_;    // floats of a thread
  AlignedArray<float> workspace_;  // [threads, workspace_size]
  AlignedArray<float> filters_;
  Range inside_;
};

}  // namespace stepladder::convolution::inline STEPLADDER_ISA

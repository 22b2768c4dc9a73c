// dw = the products of dy with the pixels of x, with the switches of the lattice (lattice.cpp).
// Threads have ranges of images and add their sums at the end.
#pragma once

#include <algorithm>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/partition.hpp"
#include "kernels/common/cpu/product.hpp"
#include "kernels/common/cpu/sum_of.hpp"
#include "kernels/convolution/convolution.hpp"
#include "kernels/convolution/cpu/unfolded/unfold.hpp"
#include "kernels/convolution/cpu/valid_range.hpp"
#include "kernels/convolution/lattice/image.hpp"

namespace stepladder::convolution::inline STEPLADDER_ISA {

template <bool unfolding, bool vectors, bool tile, bool packing>
class WeightGradient {
  using Product = stepladder::Product<vectors, tile, packing>;
  using Lanes = typename Product::Lanes;
  static constexpr bool is_padded = !unfolding && packing;  // whether the image is
  // A tile of channels and taps of a row: 12 accumulators.
  static constexpr std::int64_t tile_channels = 4, tile_taps = 3;

 public:
  WeightGradient(const Problem& p, int threads)
      : p_(p),
        threads_(static_cast<int>(std::min<std::int64_t>(threads, p.batch))),
        pixels_(p.out_h() * p.out_w()),
        taps_(p.group_in() * p.kernel_h * p.kernel_w),
        image_(p),
        workspace_size_(workspace()),
        workspace_(aligned_array<float>(static_cast<std::size_t>(workspace_size_ * threads_))),
        partial_(aligned_array<float>(
            static_cast<std::size_t>((threads_ - 1) * p.out_channels * taps_))) {
    // What pads panels and images is read.
    std::fill_n(workspace_.get(), workspace_size_ * threads_, 0.0F);
  }

  void run(const Operands& o) {
    const std::int64_t size = p_.out_channels * taps_;
#pragma omp parallel num_threads(threads_) if (threads_ > 1)
    {
#pragma omp for schedule(static, 1)
      for (int thread = 0; thread < threads_; ++thread)
        sum_images(o, partition(p_.batch, threads_, thread),
                   thread == 0 ? o.w : partial_.get() + (thread - 1) * size,
                   workspace_.get() + thread * workspace_size_);
#pragma omp for schedule(static, 1)
      for (int thread = 0; thread < threads_; ++thread) {
        const Range part = partition(size, threads_, thread);
        for (int other = 1; other < threads_; ++other)
          Product::add_multiple(1.0F, partial_.get() + (other - 1) * size + part.begin,
                                o.w + part.begin, part.end - part.begin);
      }
    }
  }

 private:
  std::int64_t workspace() const {
    if (unfolding)
      return pixels_ * (Product::has_panels ? Product::whole_panels(taps_) : taps_ + line_floats);
    return is_padded ? p_.group_in() * image_.height * image_.width + line_floats : 0;
  }

  // w [groups, group_out, taps] = the sums of these images
  void sum_images(const Operands& o, Range images, float* w, float* work) const {
    if (!unfolding) std::fill_n(w, p_.out_channels * taps_, 0.0F);
    for (std::int64_t n = images.begin; n < images.end; ++n)
      for (std::int64_t g = 0; g < p_.groups; ++g)
        add_image(o.x + (n * p_.groups + g) * p_.group_in() * p_.height * p_.width,
                  o.y + (n * p_.groups + g) * p_.group_out() * pixels_,
                  w + g * p_.group_out() * taps_, work, n > images.begin);
  }

  // One group of an image: x [group_in, height, width], y [group_out, pixels], w [group_out, taps]
  void add_image(const float* x, const float* y, float* w, float* work, bool adds) const {
    if constexpr (unfolding) {
      if constexpr (Product::has_panels)
        unfold_into_panels(x, work);
      else
        unfold_transposed(p_, x, work, taps_ + line_floats);
      Product::multiply(y, pixels_, 1, work, taps_ + line_floats, w, taps_, p_.group_out(), taps_,
                        pixels_, adds);
      return;
    }
    x = image_.read(p_, x, work);
    for (std::int64_t i = 0; i < p_.group_in(); ++i, x += image_.height * image_.width)
      for (std::int64_t r = 0; r < p_.kernel_h; ++r) {
        float* row_of_w = w + (i * p_.kernel_h + r) * p_.kernel_w;
        if constexpr (tile)
          add_tiles(x, y, row_of_w, r);
        else
          for (std::int64_t o = 0; o < p_.group_out(); ++o)
            for (std::int64_t s = 0; s < p_.kernel_w; ++s)
              add_rows<1, 1>(x, y + o * pixels_, row_of_w + o * taps_ + s, r, s);
      }
  }

  // All channels of a row of taps.
  void add_tiles(const float* x, const float* y, float* w, std::int64_t r) const {
    for (std::int64_t o = 0; o < p_.group_out();) {
      const std::int64_t channels = p_.group_out() - o >= tile_channels ? tile_channels : 1;
      for (std::int64_t s = 0; s < p_.kernel_w;) {
        const std::int64_t count = p_.kernel_w - s >= tile_taps ? tile_taps : 1;
        const float* dy = y + o * pixels_;
        float* to = w + o * taps_ + s;
        if (channels == 1 && count == 1)
          add_rows<1, 1>(x, dy, to, r, s);
        else if (channels == 1)
          add_rows<1, tile_taps>(x, dy, to, r, s);
        else if (count == 1)
          add_rows<tile_channels, 1>(x, dy, to, r, s);
        else
          add_rows<tile_channels, tile_taps>(x, dy, to, r, s);
        s += count;
      }
      o += channels;
    }
  }

  Range columns_of(std::int64_t s) const {
    return valid_range(image_.width, p_.out_w(), p_.stride_w, s - image_.pad_w);
  }

  // w [Channels, Taps] += sum over the pixels that read the image through row r and columns s,
  // s + 1 … of the filter. The pixels that all of these columns read are on vectors.
  template <std::int64_t Channels, std::int64_t Taps>
  void add_rows(const float* x, const float* y, float* w, std::int64_t r, std::int64_t s) const {
    const Range rows = valid_range(image_.height, p_.out_h(), p_.stride_h, r - image_.pad_h);
    Range common = columns_of(s);
    for (std::int64_t t = 1; t < Taps; ++t)
      common = {std::max(common.begin, columns_of(s + t).begin),
                std::min(common.end, columns_of(s + t).end)};
    common.end = std::max(common.begin, common.end);
    const auto x_row = [&](std::int64_t row) {
      return x + (row * p_.stride_h + r - image_.pad_h) * image_.width + s - image_.pad_w;
    };
    if (p_.stride_w == 1)
      add_products<Lanes, Channels, Taps>(x_row, y, w, rows, common);
    else
      add_products<Scalar, Channels, Taps>(x_row, y, w, rows, common);
    for (std::int64_t t = 0; t < Taps; ++t) {
      const Range own = columns_of(s + t);
      for (const Range rest : {Range{own.begin, std::min(own.end, common.begin)},
                               Range{std::max(own.begin, common.end), own.end}})
        for (std::int64_t row = rows.begin; row < rows.end; ++row)
          for (std::int64_t q = rest.begin; q < rest.end; ++q)
            for (std::int64_t c = 0; c < Channels; ++c)
              w[c * taps_ + t] +=
                  y[c * pixels_ + row * p_.out_w() + q] * x_row(row)[q * p_.stride_w + t];
    }
  }

  // With a tile the sums stay in registers for all rows, otherwise for one.
  template <class V, std::int64_t Channels, std::int64_t Taps, class RowOf>
  void add_products(const RowOf& x_row, const float* y, float* w, Range rows, Range columns) const {
    constexpr std::int64_t size = V::size;
    V acc[Channels][Taps];
    const auto clear = [&] {
      for (std::int64_t c = 0; c < Channels; ++c)
        for (std::int64_t t = 0; t < Taps; ++t) acc[c][t] = V(0.0F);
    };
    const auto add = [&] {
      for (std::int64_t c = 0; c < Channels; ++c)
        for (std::int64_t t = 0; t < Taps; ++t) w[c * taps_ + t] += sum_of(acc[c][t]);
    };
    clear();
    for (std::int64_t row = rows.begin; row < rows.end; ++row) {
      const float* from = x_row(row);
      const float* dy = y + row * p_.out_w();
      for (std::int64_t q = columns.begin; q < columns.end; q += size) {
        const std::int64_t count = std::min(size, columns.end - q);
        const auto load = [&](const float* at) {
          return count == size ? V(V::load_unaligned(at)) : load_partial<V>(at, count);
        };
        V pixels[Taps];
        for (std::int64_t t = 0; t < Taps; ++t) pixels[t] = load(from + q * p_.stride_w + t);
        for (std::int64_t c = 0; c < Channels; ++c) {
          const V gradient = load(dy + c * pixels_ + q);
          for (std::int64_t t = 0; t < Taps; ++t) acc[c][t] = fma(gradient, pixels[t], acc[c][t]);
        }
      }
      if constexpr (!tile) add(), clear();
    }
    if constexpr (tile) add();
  }

  // [panels of taps, pixels, panel]
  void unfold_into_panels(const float* x, float* panels) const {
    constexpr std::int64_t panel = Product::panel;
    for (std::int64_t pixel = 0; pixel < pixels_; ++pixel) {
      const std::int64_t top = pixel / p_.out_w() * p_.stride_h - p_.pad_h,
                         left = pixel % p_.out_w() * p_.stride_w - p_.pad_w;
      float* to = panels + pixel * panel;
      std::int64_t free = panel;
      for (std::int64_t i = 0; i < p_.group_in(); ++i)
        for (std::int64_t r = top; r < top + p_.kernel_h; ++r) {
          const bool in_image = r >= 0 && r < p_.height;
          const float* from = x + (i * p_.height + r) * p_.width;
          for (std::int64_t s = left; s < left + p_.kernel_w; ++s) {
            *to++ = in_image && s >= 0 && s < p_.width ? from[s] : 0.0F;
            if (--free == 0) to += (pixels_ - 1) * panel, free = panel;
          }
        }
    }
  }

  Problem p_;
  int threads_;
  std::int64_t pixels_, taps_;
  Image<is_padded> image_;
  std::int64_t workspace_size_;    // floats of a thread
  AlignedArray<float> workspace_;  // [threads, workspace_size]
  AlignedArray<float> partial_;    // [threads - 1, groups, group_out, taps]
};

}  // namespace stepladder::convolution::inline STEPLADDER_ISA

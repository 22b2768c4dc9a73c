// backward_weights without unfolding: x is read where it lies; dy is transposed, an image at a time in
// the cache, so that a pixel's gradients of neighbouring output channels make a vector.
//
//   a tile of dw:  up to 14 taps of one kernel row x 2 vectors of output channels, its sums in
//                  registers while all pixels of an image pass by
//
//     dy of a pixel         per pixel, for AVX-512: 2 vectors of dy and, for each tap, 1 broadcast of
//       d0 | d1             x for 2 FMAs. The taps are kernel_w neighbours in a row of x, of as many
//   x0  s  | s              input channels as there is room for.
//   x1  s  | s
//   …                       Rows of dy that a kernel row carries off the image are skipped; pixels
//                           near a row's ends take only the taps that are on the image.
//
// Threads share the rows of the batch; their sums are added in the end.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>
#include <xsimd/xsimd.hpp>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/transpose.hpp"
#include "kernels/convolution/cpu/inside.hpp"
#include "kernels/convolution/cpu/steps.hpp"

namespace stepladder::convolution::inline STEPLADDER_ISA {

class DirectWeightGradient final : public Steps {
 public:
  DirectWeightGradient(const Problem& problem, int threads) : p_(problem), threads_(threads) {
    // The taps of one kernel row: of several channels, or a part of the row when it is long.
    const std::int64_t channels = std::max<std::int64_t>(1, most_taps / p_.kernel_w);
    const std::int64_t columns = std::min(p_.kernel_w, most_taps);
    for (std::int64_t channel = 0; channel < p_.group_in(); channel += channels)
      for (std::int64_t column = 0; column < p_.kernel_w; column += columns) {
        const std::int64_t count = std::min(columns, p_.kernel_w - column);
        const std::int64_t until = std::min(channel + channels, p_.group_in());
        TapRow taps{};
        for (std::int64_t c = channel; c < until; ++c)
          for (std::int64_t s = column; s < column + count; ++s)
            taps.channels[taps.count] = c, taps.columns[taps.count++] = s;
        // Pixels that see the image through all of these taps.
        const Range left = inside(p_.width, p_.out_w(), p_.stride_w, column - p_.pad_w);
        const Range right =
            inside(p_.width, p_.out_w(), p_.stride_w, column + count - 1 - p_.pad_w);
        taps.whole.first = std::max(left.first, right.first);
        taps.whole.last = std::max(taps.whole.first, std::min(left.last, right.last));
        tap_rows_.push_back(taps);
      }
    dy_ = aligned_array<float>(static_cast<std::size_t>(threads_ * pixels() * panel));
    std::fill_n(dy_.get(), threads_ * pixels() * panel, 0.0F);
    sums_ = aligned_array<float>(static_cast<std::size_t>(threads_ * sums_size()));
  }

  void step(int step, int thread, const Operands& operands) override {
    if (step == 0)
      add_products(thread, operands);
    else
      write(thread, operands.w);
  }

 private:
  static constexpr std::int64_t lanes = Vector::size;
  static constexpr std::int64_t most_taps = lanes == 16 ? 14 : 6;  // 28 of 32 or 12 of 16 sums
  static constexpr std::int64_t panel = 2 * lanes;                 // output channels

  struct TapRow {
    std::int64_t count;
    std::array<std::int64_t, most_taps> channels, columns;
    Range whole;
  };

  std::int64_t pixels() const { return p_.out_h() * p_.out_w(); }
  std::int64_t panels() const { return (p_.group_out() + panel - 1) / panel; }
  std::int64_t tiles() const {
    return p_.groups * panels() * p_.kernel_h * static_cast<std::int64_t>(tap_rows_.size());
  }
  std::int64_t sums_size() const { return tiles() * most_taps * panel; }  // floats

  // One thread's rows of dy, image by image and panel by panel.
  void add_products(int thread, const Operands& operands) {
    float* sums = sums_.get() + thread * sums_size();
    const Share share(p_.batch * p_.out_h(), threads_, thread);
    if (share.first == share.last) std::fill_n(sums, sums_size(), 0.0F);
    for (std::int64_t first = share.first; first < share.last;) {
      const std::int64_t image = first / p_.out_h();
      const std::int64_t last = std::min(share.last, (image + 1) * p_.out_h());
      const Range rows{first - image * p_.out_h(), last - image * p_.out_h()};
      for (std::int64_t block = 0; block < p_.groups * panels(); ++block)
        add_panel(thread, operands, image, rows, block, first > share.first,
                  sums + block * (sums_size() / p_.groups / panels()));
      first = last;
    }
  }

  // block: the panel, counted through all groups. dy_ of the thread: [pixels, channels of the panel];
  // what lies on lanes without a channel does not count.
  void add_panel(int thread, const Operands& operands, std::int64_t image, const Range& rows,
                 std::int64_t block, bool accumulate, float* sums) {
    static constexpr auto kernels = []<std::size_t... T>(std::index_sequence<T...>) {
      return std::array<Kernel, sizeof...(T)>{&add_rows<T / 2 + 1, T % 2 + 1>...};
    }(std::make_index_sequence<2 * most_taps>{});
    const std::int64_t group = block / panels(), first = block % panels() * panel;
    const std::int64_t channels = std::min(panel, p_.group_out() - first);
    float* dy = dy_.get() + thread * pixels() * panel;
    transpose(operands.y + ((image * p_.groups + group) * p_.group_out() + first) * pixels() +
                        rows.first * p_.out_w(),
                    pixels(), dy, panel, channels, (rows.last - rows.first) * p_.out_w());
    const float* x =
        operands.x + (image * p_.groups + group) * p_.group_in() * p_.height * p_.width;
    for (std::int64_t kernel_row = 0; kernel_row < p_.kernel_h; ++kernel_row)
      for (const TapRow& taps : tap_rows_) {
        kernels[static_cast<std::size_t>((taps.count - 1) * 2 + (channels > lanes ? 1 : 0))](
            p_, taps, kernel_row, rows, x, dy, sums, accumulate);
        sums += most_taps * panel;
      }
  }

  // One thread's tiles, the sums of all threads added, to where dw has them.
  void write(int thread, float* dw) const {
    const auto rows = static_cast<std::int64_t>(tap_rows_.size());
    const std::int64_t plane = p_.kernel_h * p_.kernel_w;
    const Share share(tiles(), threads_, thread);
    for (std::int64_t item = share.first; item < share.last; ++item) {
      const TapRow& taps = tap_rows_[static_cast<std::size_t>(item % rows)];
      const std::int64_t kernel_row = item / rows % p_.kernel_h, block = item / rows / p_.kernel_h;
      const std::int64_t first = block % panels() * panel;
      const std::int64_t channels = std::min(panel, p_.group_out() - first);
      for (std::int64_t o = 0; o < channels; ++o) {
        const std::int64_t channel = block / panels() * p_.group_out() + first + o;
        float* filter = dw + channel * p_.group_in() * plane + kernel_row * p_.kernel_w;
        for (std::int64_t j = 0; j < taps.count; ++j) {
          const float* sums = sums_.get() + (item * most_taps + j) * panel + o;
          float sum = 0;
          for (int t = 0; t < threads_; ++t) sum += sums[t * sums_size()];
          const auto tap = static_cast<std::size_t>(j);
          filter[taps.channels[tap] * plane + taps.columns[tap]] = sum;
        }
      }
    }
  }

  // `rows` of dy of one image: dy begins with them, x with the image.
  using Kernel = void (*)(const Problem&, const TapRow&, std::int64_t kernel_row, const Range& rows,
                          const float* x, const float* dy, float* sums, bool accumulate);

  // I runs over the sums, tap by tap, V over the vectors of channels.
  template <std::int64_t Taps, std::int64_t Vectors, std::size_t... I, std::size_t... V>
  static void add_rows(std::index_sequence<I...>, std::index_sequence<V...>, const Problem& p,
                       const TapRow& taps, std::int64_t kernel_row, const Range& rows,
                       const float* x, const float* dy, float* sums, bool accumulate) {
    const auto at = [sums](std::size_t i) {
      return sums + static_cast<std::int64_t>(i) / Vectors * panel +
             static_cast<std::int64_t>(i) % Vectors * lanes;
    };
    Vector sum[] = {(accumulate ? Vector::load_aligned(at(I)) : Vector(0.0f))...};
    std::int64_t offset[Taps];
    for (std::int64_t j = 0; j < Taps; ++j) {
      const auto tap = static_cast<std::size_t>(j);
      offset[j] = taps.channels[tap] * p.height * p.width + taps.columns[tap];
    }
    const Range seen = inside(p.height, p.out_h(), p.stride_h, kernel_row - p.pad_h);
    const std::int64_t last = std::min(seen.last, rows.last);
    for (std::int64_t row = std::max(seen.first, rows.first); row < last; ++row) {
      const float* d = dy + (row - rows.first) * p.out_w() * panel;
      const float* from = x + (row * p.stride_h - p.pad_h + kernel_row) * p.width - p.pad_w;
      for (std::int64_t q = 0; q < p.out_w(); ++q, d += panel, from += p.stride_w) {
        const Vector d_q[] = {Vector::load_aligned(d + V * lanes)...};
        if (q >= taps.whole.first && q < taps.whole.last) {
          ((sum[I] = xsimd::fma(Vector(from[offset[I / Vectors]]), d_q[I % Vectors], sum[I])), ...);
        } else {
          const std::int64_t first = q * p.stride_w - p.pad_w;  // column of x under tap column 0
          ((first + taps.columns[I / Vectors] >= 0 && first + taps.columns[I / Vectors] < p.width
                ? void(sum[I] =
                           xsimd::fma(Vector(from[offset[I / Vectors]]), d_q[I % Vectors], sum[I]))
                : void()),
           ...);
        }
      }
    }
    (sum[I].store_aligned(at(I)), ...);
  }

  template <std::int64_t Taps, std::int64_t Vectors>
  static void add_rows(const Problem& p, const TapRow& taps, std::int64_t kernel_row,
                       const Range& rows, const float* x, const float* dy, float* sums,
                       bool accumulate) {
    add_rows<Taps, Vectors>(std::make_index_sequence<Taps * Vectors>{},
                            std::make_index_sequence<Vectors>{}, p, taps, kernel_row, rows, x, dy,
                            sums, accumulate);
  }

  Problem p_;
  int threads_;
  std::vector<TapRow> tap_rows_;
  AlignedArray<float> dy_;    // [threads, pixels, panel]
  AlignedArray<float> sums_;  // [threads, groups, panels, kernel rows, tap rows, taps, panel]
};

}  // namespace stepladder::convolution::inline STEPLADDER_ISA

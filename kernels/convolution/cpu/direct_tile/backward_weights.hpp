// backward_weights without unfolding: x is read in place. dy is transposed in the cache, one image
// at a time, so that the output channels of a pixel are contiguous and form vectors.
//
//   tile of dw: up to 14 taps of one kernel row x 2 vectors of output channels, in registers while
//   all pixels of an image are added
//
//       dy of a pixel      AVX-512, per pixel: 2 vector loads of dy and, per tap, 1 broadcast of x
//         d0  | d1         for 2 FMAs. The taps are kernel_w neighbours in a row of x, of as many
//   x0    acc | acc        input channels as fit.
//   x1    acc | acc
//   …     …   | …          Rows of dy whose kernel row is outside the image are skipped. Pixels
//                          near the ends of a row use only the taps inside the image.
//
// Threads divide the rows of the batch; their partial sums are added at the end. Elements of two
// numbers hold two images, which count as one.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>
#include <xsimd/xsimd.hpp>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/partition.hpp"
#include "kernels/common/cpu/transpose.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/convolution/cpu/direct_tile/elements.hpp"
#include "kernels/convolution/cpu/threaded_convolution.hpp"
#include "kernels/convolution/cpu/valid_range.hpp"

namespace stepladder::convolution::inline STEPLADDER_ISA {

template <class Elements>
class DirectTileBackwardWeights final : public ThreadedConvolution {
 public:
  DirectTileBackwardWeights(const Problem& problem, int threads) : p_(problem), threads_(threads) {
    // Taps of one kernel row: of several channels, or a part of a long row.
    const std::int64_t channels = std::max<std::int64_t>(1, max_taps / p_.kernel_w);
    const std::int64_t columns = std::min(p_.kernel_w, max_taps);
    for (std::int64_t channel = 0; channel < p_.group_in(); channel += channels)
      for (std::int64_t column = 0; column < p_.kernel_w; column += columns) {
        const std::int64_t count = std::min(columns, p_.kernel_w - column);
        const std::int64_t until = std::min(channel + channels, p_.group_in());
        TapRow taps{};
        for (std::int64_t c = channel; c < until; ++c)
          for (std::int64_t s = column; s < column + count; ++s)
            taps.channels[taps.count] = c, taps.columns[taps.count++] = s;
        // Pixels for which all of these taps are inside the image.
        const Range left = valid_range(p_.width, p_.out_w(), p_.stride_w, column - p_.pad_w);
        const Range right =
            valid_range(p_.width, p_.out_w(), p_.stride_w, column + count - 1 - p_.pad_w);
        taps.interior.begin = std::max(left.begin, right.begin);
        taps.interior.end = std::max(taps.interior.begin, std::min(left.end, right.end));
        tap_rows_.push_back(taps);
      }
    dy_ = aligned_array<float>(static_cast<std::size_t>(threads_ * pixels() * panel));
    std::fill_n(dy_.get(), threads_ * pixels() * panel, 0.0F);
    partials_ = aligned_array<float>(static_cast<std::size_t>(threads_ * partials_size()));
    if constexpr (Elements::numbers > 1)
      elements_ = aligned_array<float>(static_cast<std::size_t>(threads_ * elements_size()));
  }

  void run_phase(int phase, int thread, const Operands& operands) override {
    if (phase == 0)
      add_products(thread, operands);
    else
      reduce_partials(thread, operands.w);
  }

 private:
  static constexpr std::int64_t lanes = Vector::size;
  static constexpr std::int64_t max_taps =
      vector_registers == 32 ? 14 : 6;              // 28 or 12 accumulators
  static constexpr std::int64_t panel = 2 * lanes;  // output channels

  struct TapRow {
    std::int64_t count;
    std::array<std::int64_t, max_taps> channels, columns;
    Range interior;  // pixels for which all taps are inside the image
  };

  std::int64_t pixels() const { return p_.out_h() * p_.out_w(); }
  std::int64_t panels() const { return ceil_div(p_.group_out(), panel); }
  std::int64_t tiles() const {
    return p_.groups * panels() * p_.kernel_h * static_cast<std::int64_t>(tap_rows_.size());
  }
  std::int64_t partials_size() const { return tiles() * max_taps * panel; }  // floats

  // Adds the products of one thread's rows of dy, image by image and panel by panel.
  void add_products(int thread, const Operands& operands) {
    float* partials = partials_.get() + thread * partials_size();
    const Range part =
        partition(ceil_div(p_.batch, Elements::numbers) * p_.out_h(), threads_, thread);
    if (part.begin == part.end) std::fill_n(partials, partials_size(), 0.0F);
    for (std::int64_t first = part.begin; first < part.end;) {
      const std::int64_t image = first / p_.out_h();
      const std::int64_t last = std::min(part.end, (image + 1) * p_.out_h());
      const Range rows{first - image * p_.out_h(), last - image * p_.out_h()};
      for (std::int64_t block = 0; block < p_.groups * panels(); ++block) {
        const Images images =
            images_of(thread, operands, image, block / panels(), block % panels() == 0);
        add_panel(thread, images, rows, block, first > part.begin,
                  partials + block * (partials_size() / p_.groups / panels()));
      }
      first = last;
    }
  }

  // Of one group: x [group_in, height, width] and dy [group_out, pixels].
  struct Images {
    const float *x, *y;
  };

  std::int64_t x_size() const { return p_.group_in() * p_.height * p_.width; }
  std::int64_t y_size() const { return p_.group_out() * pixels(); }
  std::int64_t elements_size() const { return x_size() + y_size(); }

  // Image `image`, or the pair of this index. is_new: not the one of the call before.
  Images images_of(int thread, const Operands& o, std::int64_t image, std::int64_t group,
                   bool is_new) const {
    const auto at = [&](std::int64_t n) {
      return Images{o.x + (n * p_.groups + group) * x_size(),
                    o.y + (n * p_.groups + group) * y_size()};
    };
    if constexpr (Elements::numbers > 1) {
      float *x = elements_.get() + thread * elements_size(), *y = x + x_size();
      if (is_new) {
        const bool is_pair = 2 * image + 1 < p_.batch;
        const Images first = at(2 * image), second = at(2 * image + (is_pair ? 1 : 0));
        Elements::make(first.x, is_pair ? second.x : nullptr, x_size(), x);
        Elements::make(first.y, is_pair ? second.y : nullptr, y_size(), y);
      }
      return {x, y};
    }
    return at(image);
  }

  // block: index of the panel, through all groups. The thread's dy_: [pixels, channels of the
  // panel]; lanes without a channel are ignored.
  void add_panel(int thread, const Images& images, const Range& rows, std::int64_t block,
                 bool accumulate, float* partials) {
    static constexpr auto kernels = []<std::size_t... T>(std::index_sequence<T...>) {
      return std::array<Kernel, sizeof...(T)>{&add_rows<T / 2 + 1, T % 2 + 1>...};
    }
    (std::make_index_sequence<2 * max_taps>{});
    const std::int64_t first = block % panels() * panel;
    const std::int64_t channels = std::min(panel, p_.group_out() - first);
    float* dy = dy_.get() + thread * pixels() * panel;
    transpose(images.y + first * pixels() + rows.begin * p_.out_w(), pixels(), dy, panel, channels,
              (rows.end - rows.begin) * p_.out_w());
    for (std::int64_t kernel_row = 0; kernel_row < p_.kernel_h; ++kernel_row)
      for (const TapRow& taps : tap_rows_) {
        kernels[static_cast<std::size_t>((taps.count - 1) * 2 + (channels > lanes ? 1 : 0))](
            p_, taps, kernel_row, rows, images.x, dy, partials, accumulate);
        partials += max_taps * panel;
      }
  }

  // Adds the partial sums of one thread's tiles and writes them to dw.
  void reduce_partials(int thread, float* dw) const {
    const auto rows = static_cast<std::int64_t>(tap_rows_.size());
    const std::int64_t plane = p_.kernel_h * p_.kernel_w;
    const Range part = partition(tiles(), threads_, thread);
    for (std::int64_t item = part.begin; item < part.end; ++item) {
      const TapRow& taps = tap_rows_[static_cast<std::size_t>(item % rows)];
      const std::int64_t kernel_row = item / rows % p_.kernel_h, block = item / rows / p_.kernel_h;
      const std::int64_t first = block % panels() * panel;
      const std::int64_t channels = std::min(panel, p_.group_out() - first);
      for (std::int64_t o = 0; o < channels; ++o) {
        const std::int64_t channel = block / panels() * p_.group_out() + first + o;
        float* filter = dw + channel * p_.group_in() * plane + kernel_row * p_.kernel_w;
        for (std::int64_t j = 0; j < taps.count; ++j) {
          const float* partial = partials_.get() + (item * max_taps + j) * panel + o;
          float sum = 0;
          for (int t = 0; t < threads_; ++t) sum += partial[t * partials_size()];
          const auto tap = static_cast<std::size_t>(j);
          filter[taps.channels[tap] * plane + taps.columns[tap]] = sum;
        }
      }
    }
  }

  // Adds the products of `rows` of one image; dy points to the first of them, x to the image.
  using Kernel = void (*)(const Problem&, const TapRow&, std::int64_t kernel_row, const Range& rows,
                          const float* x, const float* dy, float* partials, bool accumulate);

  // I runs over the accumulators, tap by tap, V over the vectors of channels.
  template <std::int64_t Taps, std::int64_t Vectors, std::size_t... I, std::size_t... V>
  static void add_rows(std::index_sequence<I...>, std::index_sequence<V...>, const Problem& p,
                       const TapRow& taps, std::int64_t kernel_row, const Range& rows,
                       const float* x, const float* dy, float* partials, bool accumulate) {
    const auto at = [partials](std::size_t i) {
      return partials + static_cast<std::int64_t>(i) / Vectors * panel +
             static_cast<std::int64_t>(i) % Vectors * lanes;
    };
    Vector acc[] = {(accumulate ? Vector::load_aligned(at(I)) : Vector(0.0f))...};
    std::int64_t offset[Taps];
    for (std::int64_t j = 0; j < Taps; ++j) {
      const auto tap = static_cast<std::size_t>(j);
      offset[j] = taps.channels[tap] * p.height * p.width + taps.columns[tap];
    }
    const Range valid = valid_range(p.height, p.out_h(), p.stride_h, kernel_row - p.pad_h);
    const std::int64_t last = std::min(valid.end, rows.end);
    for (std::int64_t row = std::max(valid.begin, rows.begin); row < last; ++row) {
      const float* d = dy + (row - rows.begin) * p.out_w() * panel;
      const float* from = x + (row * p.stride_h - p.pad_h + kernel_row) * p.width - p.pad_w;
      for (std::int64_t q = 0; q < p.out_w(); ++q, d += panel, from += p.stride_w) {
        const Vector d_q[] = {Vector::load_aligned(d + V * lanes)...};
        if (q >= taps.interior.begin && q < taps.interior.end) {
          ((acc[I] = Elements::add_products(acc[I], Vector(from[offset[I / Vectors]]),
                                            d_q[I % Vectors])),
           ...);
        } else {
          const std::int64_t first = q * p.stride_w - p.pad_w;  // column of x under tap column 0
          ((first + taps.columns[I / Vectors] >= 0 && first + taps.columns[I / Vectors] < p.width
                ? void(acc[I] = Elements::add_products(acc[I], Vector(from[offset[I / Vectors]]),
                                                       d_q[I % Vectors]))
                : void()),
           ...);
        }
      }
    }
    (acc[I].store_aligned(at(I)), ...);
  }

  template <std::int64_t Taps, std::int64_t Vectors>
  static void add_rows(const Problem& p, const TapRow& taps, std::int64_t kernel_row,
                       const Range& rows, const float* x, const float* dy, float* partials,
                       bool accumulate) {
    add_rows<Taps, Vectors>(std::make_index_sequence<Taps * Vectors>{},
                            std::make_index_sequence<Vectors>{}, p, taps, kernel_row, rows, x, dy,
                            partials, accumulate);
  }

  Problem p_;
  int threads_;
  std::vector<TapRow> tap_rows_;
  AlignedArray<float> dy_;        // [threads, pixels, panel]
  AlignedArray<float> elements_;  // of elements of two numbers: [threads, x and dy of a group]
  AlignedArray<float> partials_;  // [threads, groups, panels, kernel rows, tap rows, taps, panel]
};

}  // namespace stepladder::convolution::inline STEPLADDER_ISA

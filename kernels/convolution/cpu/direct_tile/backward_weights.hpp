// backward_weights without unfolding: x is read in place. dy is transposed in the cache, a panel of
// channels of a few images at a time, so that the output channels of a pixel are contiguous.
//
//   tile of dw: up to 14 taps of one kernel row x 2 vectors of output channels, in registers while
//   all pixels of those images are added
//
//       dy of a pixel      AVX-512, per pixel: 2 vector loads of dy and, per tap, 1 broadcast of x
//         d0  | d1         for 2 FMAs. The taps are kernel_w neighbours in a row of x, of as many
//   x0    acc | acc        input channels as fit.
//   x1    acc | acc
//   …     …   | …          Rows of dy whose kernel row is outside the image are skipped. Pixels
//                          near the ends of a row use only the taps inside the image. If one
//                          vector holds all channels of a group, a tile has up to 28 taps.
//
// Threads divide the panels where that is even, or the rows of the batch, and add their partial
// sums at the end. Elements of two numbers hold two images, which count as one.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
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
  DirectTileBackwardWeights(const Problem& problem, int threads)
      : p_(problem), threads_(threads), panel_(problem.group_out() > lanes ? 2 * lanes : lanes) {
    // Taps of one kernel row: of several channels, or a part of a long row.
    const std::int64_t max_taps = accumulators * lanes / panel_;
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
        const Range left = valid_range(p_.width, p_.out_w(), p_.stride_w, column - p_.pad_w);
        const Range right =
            valid_range(p_.width, p_.out_w(), p_.stride_w, column + count - 1 - p_.pad_w);
        taps.interior.begin = std::max(left.begin, right.begin);
        taps.interior.end = std::max(taps.interior.begin, std::min(left.end, right.end));
        for (std::int64_t q = 0; q < p_.out_w(); ++q) {
          std::uint32_t bits = 0;
          for (std::int64_t j = 0; j < taps.count; ++j) {
            const std::int64_t at =
                q * p_.stride_w - p_.pad_w + taps.columns[static_cast<std::size_t>(j)];
            if (at >= 0 && at < p_.width) bits |= 1U << j;
          }
          taps.readers.push_back(bits);
        }
        tap_rows_.push_back(taps);
      }
    image_parts_ = panels_are_even() ? 1 : threads_;
    images_at_once_ = std::clamp<std::int64_t>(bytes_of_dy / 4 / (pixels() * panel_), 1, images());
    dy_ = aligned_array<float>(static_cast<std::size_t>(threads_ * dy_size()));
    std::fill_n(dy_.get(), threads_ * dy_size(), 0.0F);
    partials_ = aligned_array<float>(static_cast<std::size_t>(image_parts_ * partials_size()));
    parts_.resize(static_cast<std::size_t>(threads_));
    for (std::vector<Rows>& parts : parts_)
      parts.reserve(static_cast<std::size_t>(images_at_once_));
    if constexpr (Elements::numbers > 1)
      elements_ = aligned_array<float>(static_cast<std::size_t>(threads_ * elements_size()));
  }

  void run_phase(int phase, int thread, const Operands& operands) override {
    if (phase == 0)
      add_products(thread, operands);
    else
      add_partials(thread, operands.w);
  }

 private:
  static constexpr std::int64_t lanes = Vector::size;
  static constexpr std::int64_t accumulators = vector_registers == 32 ? 28 : 12;
  static constexpr std::int64_t bytes_of_dy = 128 << 10;  // transposed, a part of L2

  struct TapRow {
    std::int64_t count;
    std::array<std::int64_t, accumulators> channels, columns;
    std::vector<std::uint32_t> readers;  // [out_w]: a bit per tap that is inside the image
    Range interior;                      // pixels for which all taps are
  };

  // Rows of dy of one image, or of a pair.
  struct Rows {
    Range rows;
    std::int64_t image;
    const float* x;   // the image, of one group: [group_in, height, width]
    const float* dy;  // the first of the rows, of one panel: [pixels, its vectors]
  };

  std::int64_t images() const { return ceil_div(p_.batch, Elements::numbers); }
  std::int64_t pixels() const { return p_.out_h() * p_.out_w(); }
  std::int64_t taps() const { return p_.group_in() * p_.kernel_h * p_.kernel_w; }
  std::int64_t panels() const { return ceil_div(p_.group_out(), panel_); }
  std::int64_t blocks() const { return p_.groups * panels(); }
  std::int64_t x_size() const { return p_.group_in() * p_.height * p_.width; }
  // In floats:
  std::int64_t dy_size() const { return images_at_once_ * pixels() * panel_; }
  std::int64_t partials_size() const { return blocks() * taps() * panel_; }
  std::int64_t elements_size() const { return images_at_once_ * x_size() + pixels() * panel_; }

  // Whether no thread waits for more than a tenth of its time if threads divide the panels.
  bool panels_are_even() const {
    const auto vectors_until = [&](std::int64_t block) {
      return block / panels() * ceil_div(p_.group_out(), lanes) + block % panels() * 2;
    };
    std::int64_t most = 0;
    for (std::int64_t thread = 0; thread < threads_; ++thread) {
      const Range part = partition(blocks(), threads_, thread);
      most = std::max(most, vectors_until(part.end) - vectors_until(part.begin));
    }
    return 10 * vectors_until(blocks()) >= 9 * most * threads_;
  }

  // Adds the products of one thread's rows and panels, a few images and one panel at a time.
  void add_products(int thread, const Operands& operands) {
    const bool by_panels = image_parts_ == 1;
    const Range blocks_of_thread =
        by_panels ? partition(blocks(), threads_, thread) : Range{0, blocks()};
    const Range part = by_panels ? Range{0, images() * p_.out_h()}
                                 : partition(images() * p_.out_h(), threads_, thread);
    float* partials = partials_.get() + (by_panels ? 0 : thread * partials_size());
    if (part.begin == part.end) std::fill_n(partials, partials_size(), 0.0F);
    std::vector<Rows>& parts = parts_[static_cast<std::size_t>(thread)];
    for (std::int64_t first = part.begin; first < part.end;) {
      const bool accumulate = first > part.begin;
      parts.clear();
      while (first < part.end && std::ssize(parts) < images_at_once_) {
        const std::int64_t image = first / p_.out_h();
        const std::int64_t last = std::min(part.end, (image + 1) * p_.out_h());
        parts.push_back(
            {{first - image * p_.out_h(), last - image * p_.out_h()}, image, nullptr, nullptr});
        first = last;
      }
      for (std::int64_t block = blocks_of_thread.begin; block < blocks_of_thread.end; ++block) {
        if (block == blocks_of_thread.begin || block % panels() == 0)
          set_x(thread, operands.x, block / panels(), parts);
        set_dy(thread, operands.y, block, parts);
        add_panel(parts, block, accumulate, partials + block * taps() * panel_);
      }
    }
  }

  // `count` floats of image n of `images`, which are `stride` apart, or of pair n, made into
  // elements at `offset` of the thread's.
  const float* image_of(int thread, const float* images, std::int64_t stride, std::int64_t n,
                        std::int64_t count, std::int64_t offset) const {
    const float* image = images + n * Elements::numbers * stride;
    if constexpr (Elements::numbers > 1) {
      float* elements = elements_.get() + thread * elements_size() + offset;
      Elements::make(image, 2 * n + 1 < p_.batch ? image + stride : nullptr, count, elements);
      return elements;
    }
    return image;
  }

  void set_x(int thread, const float* x, std::int64_t group, std::vector<Rows>& parts) const {
    std::int64_t offset = 0;
    for (Rows& rows : parts) {
      rows.x = image_of(thread, x + group * x_size(), p_.groups * x_size(), rows.image, x_size(),
                        offset);
      offset += x_size();
    }
  }

  // Transposes dy of one panel; lanes without a channel are ignored.
  void set_dy(int thread, const float* y, std::int64_t block, std::vector<Rows>& parts) const {
    const std::int64_t channels = channels_of(block), pitch = ceil_div(channels, lanes) * lanes;
    float* dy = dy_.get() + thread * dy_size();
    for (Rows& rows : parts) {
      const float* from = image_of(thread, y + first_channel(block) * pixels(),
                                   p_.groups * p_.group_out() * pixels(), rows.image,
                                   channels * pixels(), images_at_once_ * x_size());
      const std::int64_t count = (rows.rows.end - rows.rows.begin) * p_.out_w();
      transpose(from + rows.rows.begin * p_.out_w(), pixels(), dy, pitch, channels, count);
      rows.dy = dy;
      dy += count * pitch;
    }
  }

  // block: index of a panel, through all groups. Its first output channel of all groups:
  std::int64_t first_channel(std::int64_t block) const {
    return block / panels() * p_.group_out() + block % panels() * panel_;
  }
  std::int64_t channels_of(std::int64_t block) const {
    return std::min(panel_, p_.group_out() - block % panels() * panel_);
  }

  // partials: [group_in, kernel_h, kernel_w, panel_]
  void add_panel(const std::vector<Rows>& parts, std::int64_t block, bool accumulate,
                 float* partials) const {
    const std::int64_t vectors = ceil_div(channels_of(block), lanes);
    for (const TapRow& taps : tap_rows_) {
      const Kernel kernel = kernel_for(taps, vectors);
      for (std::int64_t kernel_row = 0; kernel_row < p_.kernel_h; ++kernel_row)
        (this->*kernel)(taps, kernel_row, parts, partials + kernel_row * p_.kernel_w * panel_,
                        accumulate);
    }
  }

  // Adds the partial sums of one thread's taps and writes them to dw.
  void add_partials(int thread, float* dw) const {
    const Range part = partition(blocks() * taps(), threads_, thread);
    for (std::int64_t row = part.begin; row < part.end;) {
      const std::int64_t block = row / taps(), tap = row % taps();
      const std::int64_t rows = std::min({taps() - tap, part.end - row, std::int64_t{64}});
      float* sums = partials_.get() + row * panel_;
      for (std::int64_t i = 1; i < image_parts_; ++i) {
        const float* others = sums + i * partials_size();
        for (std::int64_t j = 0; j < rows * panel_; j += lanes)
          (Vector::load_aligned(sums + j) + Vector::load_aligned(others + j))
              .store_aligned(sums + j);
      }
      transpose(sums, panel_, dw + first_channel(block) * taps() + tap, taps(), rows,
                channels_of(block));
      row += rows;
    }
  }

  // Adds the products of all rows to the tile's sums; partials: those of the kernel row's first tap
  // of input channel 0.
  using Kernel = void (DirectTileBackwardWeights::*)(const TapRow&, std::int64_t kernel_row,
                                                     const std::vector<Rows>& parts,
                                                     float* partials, bool accumulate) const;

  Kernel kernel_for(const TapRow& taps, std::int64_t vectors) const {
    // Of whole kernel rows, if no pixel has padding at both sides.
    const bool are_whole = taps.count >= p_.kernel_w && p_.width >= p_.kernel_w;
    const std::int64_t columns = are_whole ? p_.kernel_w : 0;
    return vectors == 2 ? kernel_for<2>(taps.count, columns) : kernel_for<1>(taps.count, columns);
  }
  template <std::int64_t Vectors>
  static Kernel kernel_for(std::int64_t taps, std::int64_t columns) {
    if (columns == 3) return kernel<Vectors, 3>(taps);
    if (columns == 5) return kernel<Vectors, 5>(taps);
    if constexpr (accumulators / Vectors >= 7)
      if (columns == 7) return kernel<Vectors, 7>(taps);
    return kernel<Vectors, 0>(taps);
  }

  // Columns: kernel_w, if the taps are whole kernel rows, or 0.
  template <std::int64_t Vectors, std::int64_t Columns>
  static Kernel kernel(std::int64_t taps) {
    constexpr std::int64_t step = std::max<std::int64_t>(Columns, 1);
    static constexpr auto kernels = []<std::size_t... T>(std::index_sequence<T...>) {
      return std::array<Kernel, sizeof...(T)>{
          &DirectTileBackwardWeights::add_rows<(T + 1) * step, Vectors, Columns>...};
    }
    (std::make_index_sequence<accumulators / Vectors / step>{});
    return kernels[static_cast<std::size_t>(taps / step - 1)];
  }

  template <std::int64_t Taps, std::int64_t Vectors, std::int64_t Columns>
  void add_rows(const TapRow& taps, std::int64_t kernel_row, const std::vector<Rows>& parts,
                float* partials, bool accumulate) const {
    constexpr std::make_index_sequence<Taps * Vectors> sums;
    constexpr std::make_index_sequence<Vectors> vectors;
    if constexpr (Columns > 0)
      add_rows_of<Columns>(sums, vectors, taps, kernel_row, parts, partials, accumulate);
    else
      add_rows<Taps>(sums, vectors, taps, kernel_row, parts, partials, accumulate);
  }

  // The sum of vector v of a tap.
  float* sum_of(const TapRow& taps, std::size_t tap, std::size_t v, float* partials) const {
    return partials +
           (taps.channels[tap] * p_.kernel_h * p_.kernel_w + taps.columns[tap]) * panel_ +
           static_cast<std::int64_t>(v) * lanes;
  }
  // What tap (kernel row, 0) of channel 0 reads for the first pixel of a row of dy.
  const float* first_of(const Rows& rows, std::int64_t row, std::int64_t kernel_row) const {
    return rows.x + (row * p_.stride_h - p_.pad_h + kernel_row) * p_.width - p_.pad_w;
  }
  // Rows of dy for which a kernel row is inside the image.
  Range valid_rows(std::int64_t kernel_row) const {
    return valid_range(p_.height, p_.out_h(), p_.stride_h, kernel_row - p_.pad_h);
  }

  // I runs over the accumulators, tap by tap, V over the vectors of channels.
  template <std::int64_t Taps, std::size_t... I, std::size_t... V>
  void add_rows(std::index_sequence<I...>, std::index_sequence<V...>, const TapRow& taps,
                std::int64_t kernel_row, const std::vector<Rows>& parts, float* partials,
                bool accumulate) const {
    constexpr std::size_t vectors = sizeof...(V);
    constexpr std::int64_t pitch = vectors * lanes;
    const auto at = [&](std::size_t i) { return sum_of(taps, i / vectors, i % vectors, partials); };
    Vector acc[] = {(accumulate ? Vector::load_aligned(at(I)) : Vector(0.0f))...};
    std::int64_t offset[Taps];
    for (std::int64_t j = 0; j < Taps; ++j) {
      const auto tap = static_cast<std::size_t>(j);
      offset[j] = taps.channels[tap] * p_.height * p_.width + taps.columns[tap];
    }
    const Range valid = valid_rows(kernel_row);
    const std::int64_t out_w = p_.out_w(), stride = p_.stride_w;
    const std::uint32_t* readers = taps.readers.data();
    for (const Rows& rows : parts) {
      const std::int64_t last = std::min(valid.end, rows.rows.end);
      for (std::int64_t row = std::max(valid.begin, rows.rows.begin); row < last; ++row) {
        const float* d = rows.dy + (row - rows.rows.begin) * out_w * pitch;
        const float* from = first_of(rows, row, kernel_row);
        std::int64_t q = 0;
        const auto add_border = [&](std::int64_t end) __attribute__((always_inline)) {
          for (; q < end; ++q, d += pitch, from += stride) {
            const Vector d_q[] = {Vector::load_aligned(d + V * lanes)...};
            ((readers[q] >> I / vectors & 1U
                  ? void(acc[I] = Elements::add_products(acc[I], Vector(from[offset[I / vectors]]),
                                                         d_q[I % vectors]))
                  : void()),
             ...);
          }
        };
        add_border(taps.interior.begin);
        for (; q < taps.interior.end; ++q, d += pitch, from += stride) {
          const Vector d_q[] = {Vector::load_aligned(d + V * lanes)...};
          ((acc[I] = Elements::add_products(acc[I], Vector(from[offset[I / vectors]]),
                                            d_q[I % vectors])),
           ...);
        }
        add_border(out_w);
      }
    }
    (acc[I].store_aligned(at(I)), ...);
  }

  // Whole kernel rows of several channels. Offsets in a row of x are constants, and so are the taps
  // of a pixel near an end of it.
  template <std::int64_t Columns, std::size_t... I, std::size_t... V>
  void add_rows_of(std::index_sequence<I...>, std::index_sequence<V...>, const TapRow& taps,
                   std::int64_t kernel_row, const std::vector<Rows>& parts, float* partials,
                   bool accumulate) const {
    constexpr std::size_t vectors = sizeof...(V), channels = sizeof...(I) / vectors / Columns;
    constexpr std::int64_t pitch = vectors * lanes;
    const auto at = [&](std::size_t i) { return sum_of(taps, i / vectors, i % vectors, partials); };
    Vector acc[] = {(accumulate ? Vector::load_aligned(at(I)) : Vector(0.0f))...};
    const Range valid = valid_rows(kernel_row);
    const std::int64_t out_w = p_.out_w(), stride = p_.stride_w, plane = p_.height * p_.width;
    const std::int64_t to_next_row = p_.stride_h * p_.width - out_w * stride;
    for (const Rows& rows : parts) {
      const std::int64_t first = std::max(valid.begin, rows.rows.begin);
      const std::int64_t last = std::min(valid.end, rows.rows.end);
      const float* d = rows.dy + (first - rows.rows.begin) * out_w * pitch;
      const float* x[channels];
      for (std::size_t c = 0; c < channels; ++c) {
        x[c] = first_of(rows, first, kernel_row) + taps.channels[c * Columns] * plane;
        asm("" : "+r"(x[c]));  // the compiler would keep an offset for each tap in memory
      }
      // Adds the products of taps from begin to end, in each channel.
      const auto add = [&]<std::int64_t begin, std::int64_t end>() __attribute__((always_inline)) {
        const Vector d_q[] = {Vector::load_aligned(d + V * lanes)...};
        const auto add_tap = [&]<std::size_t i>() __attribute__((always_inline)) {
          constexpr std::int64_t column = i / vectors % Columns;
          if constexpr (column >= begin && column < end)
            acc[i] = Elements::add_products(acc[i], Vector(x[i / vectors / Columns][column]),
                                            d_q[i % vectors]);
        };
        (add_tap.template operator()<I>(), ...);
      };
      const auto next = [&]() __attribute__((always_inline)) {
        d += pitch;
        for (const float*& channel : x) channel += stride;
      };
      const auto add_left = [&]<std::int64_t... C>(std::int64_t begin,
                                                   std::integer_sequence<std::int64_t, C...>)
          __attribute__((always_inline)) {
        ((begin == C + 1 ? add.template operator()<C + 1, Columns>() : void()), ...);
      };
      const auto add_right = [&]<std::int64_t... C>(std::int64_t end,
                                                    std::integer_sequence<std::int64_t, C...>)
          __attribute__((always_inline)) {
        ((end == C + 1 ? add.template operator()<0, C + 1>() : void()), ...);
      };
      constexpr std::make_integer_sequence<std::int64_t, Columns - 1> numbers_of_taps{};
      for (std::int64_t row = first; row < last; ++row) {
        std::int64_t q = 0;
        for (; q < taps.interior.begin; ++q, next())
          add_left(p_.pad_w - q * stride, numbers_of_taps);
        for (; q < taps.interior.end; ++q, next()) add.template operator()<0, Columns>();
        for (; q < out_w; ++q, next()) add_right(p_.width + p_.pad_w - q * stride, numbers_of_taps);
        for (const float*& channel : x) channel += to_next_row;
      }
    }
    (acc[I].store_aligned(at(I)), ...);
  }

  Problem p_;
  int threads_;
  std::int64_t panel_;           // output channels: as many as a tile has in registers
  std::int64_t image_parts_;     // 1: threads divide panels; else a part of the rows for each
  std::int64_t images_at_once_;  // whose dy of a panel is transposed together
  std::vector<TapRow> tap_rows_;
  std::vector<std::vector<Rows>> parts_;  // [threads]: what passes together
  AlignedArray<float> dy_;                // [threads, images at once, pixels, vectors]
  // Of elements of two numbers: [threads, x of a group of those images and dy of a panel of one].
  AlignedArray<float> elements_;
  AlignedArray<float> partials_;  // [image parts, blocks, taps, panel]
};

}  // namespace stepladder::convolution::inline STEPLADDER_ISA

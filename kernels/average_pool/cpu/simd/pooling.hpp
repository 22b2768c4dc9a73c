// Average pooling of planes on vectors, shared by simd and openmp. Windows of 2x2 and 3x3 with
// stride 2 on rows that two vectors hold are pooled in registers, and a window that is the whole
// plane is one sum. Other planes are pooled in two passes, a few rows at a time:
//
//   add_rows        forward: lines[i] = sum of the rows of x in the windows of row i of y
//                   backward: lines[h] = sum of the rows of dy / divisor that have row h of dx
//   add_columns     forward: y = sum of the columns of each window along a line / divisor
//   spread_columns  backward: dx = sum of the windows along a line that contain the column
//
// Both read and write whole rows, without tests: lines have zeros on both sides, where windows
// reach into padding. The lines of a pass stay in L1.
#pragma once

#include <algorithm>
#include <vector>

#include "kernels/average_pool/axis.hpp"
#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/planes.hpp"
#include "kernels/common/cpu/strided.hpp"
#include "kernels/common/cpu/sum_of.hpp"

namespace stepladder::average_pool::inline STEPLADDER_ISA {

template <class V>
inline constexpr auto lanes = static_cast<std::int64_t>(V::size);

class SimdPooling {
 public:
  // Up to `threads` threads call run() concurrently, on distinct planes.
  SimdPooling(const Problem& p, int threads)
      : p_(p), rows_(row_axis(p)), columns_(column_axis(p)), threads_(threads) {
    for (std::int64_t i = 0; i < p.out_h(); ++i) row_factors_.push_back(row_factor(p, i));
    if (p.out_h() == 1 && p.out_w() == 1 && p.pad_h == 0 && p.pad_w == 0 &&
        p.window_h == p.height && p.window_w == p.width)
      prepare_global();
    else if (has_stride_2(p, 2, 0))
      prepare_stride_2<2, 0>();
    else if (has_stride_2(p, 3, 0))
      prepare_stride_2<3, 0>();
    else if (has_stride_2(p, 3, 1))
      prepare_stride_2<3, 1>();
    if (run_ != nullptr) return;
    if (p.direction == Direction::forward)
      with_width(p.out_w(), [&]<class V>(V*) { prepare_forward<V>(); });
    else
      with_width(p.stride_w == 2 ? ceil_div(p.width, 2) : p.width,
                 [&]<class V>(V*) { prepare_backward<V>(); });
  }

  // Pools planes [first, last) of batch · channels; 0 <= thread < threads.
  void run(const Operands& o, std::int64_t first, std::int64_t last, int thread) const {
    (this->*run_)(o, first, last, lines_.get() + thread * lines_count());
  }

 private:
  // Backward, stride 2: column 2 n + parity is in `count` windows, the last of which is n + last.
  struct Windows {
    std::int64_t last, count;
  };
  using Run = void (SimdPooling::*)(const Operands&, std::int64_t, std::int64_t, float*) const;
  using AddRows = void (SimdPooling::*)(const float*, std::int64_t, std::int64_t, float*) const;

  std::int64_t lines_count() const { return chunk_ * pitch_; }

  // Lines of `length` elements behind `lead` zeros, of which `read` are read; for passes of at most
  // 16 KiB over `rows` rows.
  void prepare_lines(std::int64_t lead, std::int64_t length, std::int64_t read, std::int64_t rows) {
    constexpr std::int64_t floats_in_l1 = 4096, longest_vector = 16;
    lead_ = lead;
    pitch_ = round_up(std::max(read, lead + round_up(length, longest_vector)), line_floats);
    chunk_ = std::clamp<std::int64_t>(floats_in_l1 / pitch_, 1, rows);
    lines_ = aligned_array<float>(lines_count() * threads_);
    std::fill_n(lines_.get(), lines_count() * threads_, 0.0F);
  }

  // Sets add_rows_ for rows of `length` elements.
  template <bool weighted>
  void choose_add_rows(std::int64_t length) {
    with_width(length, [&]<class V>(V*) {
      add_rows_ = length < lanes<V> ? &SimdPooling::add_rows<V, weighted, true>
                                    : &SimdPooling::add_rows<V, weighted, false>;
    });
  }

  // Lines of the ranges [first, last), from a plane of x (forward) or dy (backward, weighted).
  template <class V, bool weighted, bool partial>
  void add_rows(const float* plane, std::int64_t first, std::int64_t last, float* lines) const {
    const std::int64_t length = weighted ? columns_.out : columns_.size;
    for (std::int64_t i = first; i < last; ++i, lines += pitch_) {
      const Range rows = ranges_[static_cast<std::size_t>(i)];
      const float* from = plane + rows.begin * length;
      const float* factors = row_factors_.data() + rows.begin;
      switch (rows.end - rows.begin) {
        case 1:
          add<V, weighted, partial, 1>(from, length, 1, factors, lines + lead_);
          break;
        case 2:
          add<V, weighted, partial, 2>(from, length, 2, factors, lines + lead_);
          break;
        case 3:
          add<V, weighted, partial, 3>(from, length, 3, factors, lines + lead_);
          break;
        default:
          add<V, weighted, partial, 0>(from, length, rows.end - rows.begin, factors, lines + lead_);
      }
    }
  }

  // line[c] = sum of `count` rows of `length` elements, times the factors if weighted. known_count
  // is 0 if the count is not a compile-time constant. The last vector overlaps the one before; a
  // row shorter than a vector (partial) is loaded under a mask.
  template <class V, bool weighted, bool partial, int known_count>
  void add(const float* rows, std::int64_t length, std::int64_t count, const float* factors,
           float* line) const {
    const auto load = [&](const float* p) {
      if constexpr (partial)
        return load_partial<V>(p, length);
      else
        return V(V::load_unaligned(p));
    };
    if constexpr (known_count > 0) count = known_count;
    const std::int64_t last = partial ? 0 : length - lanes<V>;
    for (std::int64_t c = 0; c < length; c += lanes<V>) {
      const std::int64_t at = std::min(c, last);
      V sum(0.0F);
      for (std::int64_t r = 0; r < count; ++r) {
        V row = load(rows + r * length + at);
        if constexpr (weighted) row = row * V(factors[r]);
        sum = r == 0 ? row : V(sum + row);
      }
      if constexpr (weighted) sum = sum * load(column_factors_.get() + at);
      sum.store_unaligned(line + at);
    }
  }

  // Rows that two vectors hold need no lines: all that a row of windows reads is in registers.
  template <int window, int pad>
  void prepare_stride_2() {
    const std::int64_t pairs = ceil_div(p_.width, 2);
    with_width(pairs + 1, [&]<class V>(V*) {
      if (pairs >= lanes<V>) return;
      set_column_factors(lanes<V>);
      if (p_.direction == Direction::forward) {
        set_forward_ranges();
        run_ = &SimdPooling::forward_in_registers<V, window, pad>;
      } else {
        set_backward_ranges();
        run_ = &SimdPooling::backward_in_registers<V, window, pad>;
      }
    });
  }

  template <class V, int window, int pad>
  void forward_in_registers(const Operands& o, std::int64_t first, std::int64_t last,
                            float*) const {
    const std::int64_t width = p_.width, in = p_.height * width, out_h = p_.out_h(),
                       out_w = p_.out_w();
    const std::int64_t in_low = std::min(width, lanes<V>), in_high = width - in_low;
    const float* const end = o.y + last * out_h * out_w;
    const V column_factors = V::load_aligned(column_factors_.get());
    for (std::int64_t plane = first; plane < last; ++plane)
      for (std::int64_t i = 0; i < out_h; ++i) {
        const Range rows = ranges_[static_cast<std::size_t>(i)];
        V low(0.0F), high(0.0F);
        for (std::int64_t h = rows.begin; h < rows.end; ++h) {
          const float* row = o.x + plane * in + h * width;
          low = low + load_partial<V>(row, in_low);
          high = high + load_partial<V>(row + in_low, in_high);
        }
        const auto [even, odd] = separated(low, high);
        V sum = even + odd;
        if constexpr (window == 3) sum = sum + (pad == 0 ? next(even) : previous(odd));
        float* y = o.y + (plane * out_h + i) * out_w;
        const V factor(row_factors_[static_cast<std::size_t>(i)]);
        store_within(y, V(sum * (factor * column_factors)), end - y);
      }
  }

  template <class V, int window, int pad>
  void backward_in_registers(const Operands& o, std::int64_t first, std::int64_t last,
                             float*) const {
    const std::int64_t width = p_.width, in = p_.height * width, out_w = p_.out_w(),
                       out = p_.out_h() * out_w;
    const float* const end = o.x + last * in;
    const V column_factors = V::load_aligned(column_factors_.get());
    for (std::int64_t plane = first; plane < last; ++plane) {
      float* dx = o.x + plane * in;
      for (std::size_t line = 0; line < ranges_.size(); ++line) {
        V sum(0.0F);
        for (std::int64_t i = ranges_[line].begin; i < ranges_[line].end; ++i)
          sum = sum + load_partial<V>(o.y + plane * out + i * out_w, out_w) *
                          V(row_factors_[static_cast<std::size_t>(i)]);
        sum = sum * column_factors;
        V even = sum, odd = sum;
        if constexpr (window == 3 && pad == 0) even = sum + previous(sum);
        if constexpr (window == 3 && pad == 1) odd = sum + next(sum);
        const auto [low, high] = interleaved(even, odd);
        for (std::int64_t row = 0; row < repeats_[line]; ++row, dx += width) {
          store_within(dx, low, end - dx);
          store_within(dx + lanes<V>, high, end - dx - lanes<V>);
        }
      }
    }
  }

  void set_forward_ranges() {
    for (std::int64_t i = 0; i < p_.out_h(); ++i) ranges_.push_back(rows_.positions(i));
  }
  // One range for consecutive rows of dx in the same windows.
  void set_backward_ranges() {
    for (std::int64_t h = 0; h < p_.height; ++h) {
      const Range windows = rows_.windows(h);
      if (h > 0 && windows.begin == ranges_.back().begin && windows.end == ranges_.back().end) {
        ++repeats_.back();
      } else {
        ranges_.push_back(windows);
        repeats_.push_back(1);
      }
    }
  }

  template <class V>
  void prepare_forward() {
    const Problem& p = p_;
    const std::int64_t outputs = round_up(p.out_w(), lanes<V>);
    const std::int64_t read = (outputs - 1) * p.stride_w + p.window_w;  // elements of a line
    prepare_lines(p.pad_w, p.width, read, p.out_h());
    set_forward_ranges();
    set_column_factors(outputs);
    choose_add_rows<false>(p.width);
    if (p.stride_w == 2 && p.window_w == 2)
      run_ = &SimdPooling::forward<V, 2, 2>;
    else if (p.stride_w == 2 && p.window_w == 3)
      run_ = &SimdPooling::forward<V, 2, 3>;
    else if (p.stride_w == 1 && p.window_w == 3)
      run_ = &SimdPooling::forward<V, 1, 3>;
    else if (p.stride_w == 2)
      run_ = &SimdPooling::forward<V, 2, 0>;
    else if (p.stride_w == 1)
      run_ = &SimdPooling::forward<V, 1, 0>;
    else
      run_ = &SimdPooling::forward<V, 0, 0>;
  }

  // stride and window are 0 if they are not compile-time constants.
  template <class V, int stride, int window>
  void forward(const Operands& o, std::int64_t first, std::int64_t last, float* lines) const {
    const std::int64_t in = p_.height * p_.width, out_h = p_.out_h(), out_w = p_.out_w();
    const float* const end = o.y + last * out_h * out_w;
    const xsimd::as_integer_t<V> steps = steps_of<V>(columns_.stride);
    for (std::int64_t plane = first; plane < last; ++plane)
      for (std::int64_t i = 0; i < out_h; i += chunk_) {
        const std::int64_t stop = std::min(out_h, i + chunk_);
        (this->*add_rows_)(o.x + plane * in, i, stop, lines);
        for (std::int64_t row = i; row < stop; ++row) {
          const float* line = lines + (row - i) * pitch_;
          float* y = o.y + (plane * out_h + row) * out_w;
          const V factor(row_factors_[static_cast<std::size_t>(row)]);
          for (std::int64_t j = 0; j < out_w; j += lanes<V>) {
            const V sum = add_columns<V, stride, window>(line + j * columns_.stride, steps);
            store_within(y + j, V(sum * (factor * V::load_aligned(column_factors_.get() + j))),
                         end - y - j);
          }
        }
      }
  }

  // The sums of windows that begin at line[0], line[stride], …
  template <class V, int stride, int known_window>
  V add_columns(const float* line, const xsimd::as_integer_t<V>& steps) const {
    const std::int64_t window = known_window ? known_window : columns_.window;
    V sum(0.0F);
    std::int64_t s = 0;
    if constexpr (stride == 2)
      for (; s + 1 < window; s += 2) {
        const auto [even, odd] = even_odd(line + s, static_cast<V*>(nullptr));
        sum = s == 0 ? V(even + odd) : V(sum + (even + odd));
      }
    for (; s < window; ++s) {
      const V column = strided<stride, V>(line + s, steps);
      sum = s == 0 ? column : V(sum + column);
    }
    return sum;
  }

  template <class V>
  static xsimd::as_integer_t<V> steps_of(std::int64_t stride) {  // 0, stride, 2 stride, …
    std::int32_t multiples[V::size];
    for (std::int32_t lane = 0; lane < lanes<V>; ++lane)
      multiples[lane] = lane * static_cast<std::int32_t>(stride);
    return xsimd::as_integer_t<V>::load_unaligned(multiples);
  }

  // [count], 1 beyond the last column.
  void set_column_factors(std::int64_t count) {
    column_factors_ = aligned_array<float>(count);
    for (std::int64_t j = 0; j < count; ++j)
      column_factors_[j] = j < p_.out_w() ? column_factor(p_, j) : 1.0F;
  }

  template <class V>
  void prepare_backward() {
    const Problem& p = p_;
    set_backward_ranges();
    set_column_factors(p.out_w());
    choose_add_rows<true>(p.out_w());
    std::int64_t lead = 0, read = 0;  // elements of a line
    if (p.stride_w == 1) {
      lead = p.window_w - 1 - p.pad_w;
      read = round_up(p.width, lanes<V>) + p.window_w - 1;
      run_ = &SimdPooling::backward<V, 1, 0, 0>;
    } else if (p.stride_w == 2) {
      for (const std::int64_t parity : {0, 1}) {
        const std::int64_t column = parity + p.pad_w, last = column / 2;
        of_parity_[parity] = {last, (p.window_w - column % 2 + 1) / 2};
        lead = std::max(lead, of_parity_[parity].count - 1 - last);
        read = std::max(read, round_up(ceil_div(p.width, 2), lanes<V>) + last);
      }
      read += lead;
      const auto has = [&](std::int64_t even, std::int64_t odd) {
        return of_parity_[0].count == even && of_parity_[1].count == odd;
      };
      run_ = has(1, 1)   ? &SimdPooling::backward<V, 2, 1, 1>
             : has(1, 2) ? &SimdPooling::backward<V, 2, 1, 2>
             : has(2, 1) ? &SimdPooling::backward<V, 2, 2, 1>
                         : &SimdPooling::backward<V, 2, 0, 0>;
    } else {
      run_ = &SimdPooling::backward<V, 0, 0, 0>;
    }
    prepare_lines(lead, p.out_w(), read, static_cast<std::int64_t>(ranges_.size()));
  }

  // stride is 0 if it is not a compile-time constant; even, odd: the counts of_parity_, if known.
  template <class V, int stride, int even, int odd>
  void backward(const Operands& o, std::int64_t first, std::int64_t last, float* lines) const {
    const std::int64_t in = p_.height * p_.width, out = p_.out_h() * p_.out_w();
    const auto count = static_cast<std::int64_t>(ranges_.size());
    const float* const end = o.x + last * in;
    for (std::int64_t plane = first; plane < last; ++plane) {
      float* dx = o.x + plane * in;
      for (std::int64_t k = 0; k < count; k += chunk_) {
        const std::int64_t stop = std::min(count, k + chunk_);
        (this->*add_rows_)(o.y + plane * out, k, stop, lines);
        for (std::int64_t line = k; line < stop; ++line) {
          const std::int64_t repeats = repeats_[static_cast<std::size_t>(line)];
          spread_columns<V, stride, even, odd>(lines + (line - k) * pitch_, dx, repeats, end - dx);
          dx += repeats * p_.width;
        }
      }
    }
  }

  // `repeats` equal rows of dx from a line. From right to left: the last vector of a row may write
  // beyond the row, up to `writable`, into the start of the next one, which is written later.
  template <class V, int stride, int even, int odd>
  void spread_columns(const float* line, float* dx, std::int64_t repeats,
                      std::int64_t writable) const {
    constexpr std::int64_t step = stride == 2 ? 2 * lanes<V> : lanes<V>;
    const std::int64_t width = columns_.size;
    if constexpr (stride == 0) {
      std::fill_n(dx, width, 0.0F);
      for (std::int64_t j = 0; j < columns_.out; ++j) {
        const auto [begin, stop] = columns_.positions(j);
        for (std::int64_t c = begin; c < stop; ++c) dx[c] += line[j];
      }
      for (std::int64_t row = 1; row < repeats; ++row) std::copy_n(dx, width, dx + row * width);
    } else {
      for (std::int64_t c = (width - 1) / step * step; c >= 0; c -= step) {
        if constexpr (stride == 1) {
          const V sum = add_columns<V, 1, 0>(line + c, {});
          for (std::int64_t row = 0, at = c; row < repeats; ++row, at += width)
            store_within(dx + at, sum, writable - at);
        } else {
          const float* windows = line + lead_ + c / 2;
          const auto [low, high] = interleaved(add_windows<V, even>(windows, of_parity_[0]),
                                               add_windows<V, odd>(windows, of_parity_[1]));
          for (std::int64_t row = 0, at = c; row < repeats; ++row, at += width) {
            store_within(dx + at, low, writable - at);
            store_within(dx + at + lanes<V>, high, writable - at - lanes<V>);
          }
        }
      }
    }
  }

  // known_count is 0 if the count is not a compile-time constant.
  template <class V, int known_count>
  static V add_windows(const float* line, const Windows& windows) {
    const std::int64_t count = known_count ? known_count : windows.count;
    V sum(0.0F);
    for (std::int64_t k = 0; k < count; ++k) {
      const V window = V::load_unaligned(line + windows.last - k);
      sum = k == 0 ? window : V(sum + window);
    }
    return sum;
  }

  // One window is the whole plane, whose rows are one row.
  void prepare_global() {
    row_factors_[0] *= column_factor(p_, 0);
    with_width(p_.height * p_.width, [&]<class V>(V*) {
      run_ = p_.direction == Direction::forward ? &SimdPooling::sum_planes<V>
                                                : &SimdPooling::fill_planes<V>;
    });
  }

  template <class V>
  void sum_planes(const Operands& o, std::int64_t first, std::int64_t last, float*) const {
    const std::int64_t count = p_.height * p_.width;
    for (std::int64_t plane = first; plane < last; ++plane) {
      const float* x = o.x + plane * count;
      V sums[4] = {V(0.0F), V(0.0F), V(0.0F), V(0.0F)};
      std::int64_t k = 0;
      for (; k + 4 * lanes<V> <= count; k += 4 * lanes<V>)
        for (std::int64_t u = 0; u < 4; ++u)
          sums[u] = sums[u] + V::load_unaligned(x + k + u * lanes<V>);
      for (; k + lanes<V> <= count; k += lanes<V>) sums[0] = sums[0] + V::load_unaligned(x + k);
      if (k < count) sums[1] = sums[1] + load_partial<V>(x + k, count - k);
      o.y[plane] = sum_of((sums[0] + sums[1]) + (sums[2] + sums[3])) * row_factors_[0];
    }
  }

  template <class V>
  void fill_planes(const Operands& o, std::int64_t first, std::int64_t last, float*) const {
    const std::int64_t count = p_.height * p_.width;
    const float* const end = o.x + last * count;
    for (std::int64_t plane = first; plane < last; ++plane) {
      const V share(o.y[plane] * row_factors_[0]);
      float* dx = o.x + plane * count;
      for (std::int64_t k = 0; k < count; k += lanes<V>) store_within(dx + k, share, end - dx - k);
    }
  }

  Problem p_;
  Axis rows_, columns_;
  int threads_;
  std::vector<Range> ranges_;           // of each line: rows of x (forward) or of dy
  std::vector<std::int64_t> repeats_;   // backward, of each line: rows of dx
  std::vector<float> row_factors_;      // [out_h]
  AlignedArray<float> column_factors_;  // [out_w], forward rounded up to vectors
  AddRows add_rows_ = nullptr;
  Run run_ = nullptr;
  Windows of_parity_[2];
  std::int64_t lead_ = 0, pitch_ = 0, chunk_ = 0;  // of lines: zeros in front, length, number
  AlignedArray<float> lines_;                      // [threads][chunk_][pitch_]
};

}  // namespace stepladder::average_pool::inline STEPLADDER_ISA

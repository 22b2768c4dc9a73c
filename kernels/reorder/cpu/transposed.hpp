// From and to nchw, every layout is a transposition of matrices:
//
//   chwn      one matrix            [batch, channels · pixels]  <->  [channels · pixels, batch]
//   nhwc      one for each image    [channels, pixels]          <->  [pixels, channels]
//   nchw16c   one for each block    [16 channels, pixels]       <->  [pixels, 16]
//
// Squares of 4 x 4 or 8 x 8 are transposed in registers (transpose.hpp), in blocks of 16 x 16:
// every cache line of both sides is moved once and whole. Expected over serial: 4 and more, up to
// the copy bandwidth of the cache level or memory. Threads divide the matrices by columns.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/common/cpu/instructions.hpp"
#include "kernels/common/cpu/partition.hpp"
#include "kernels/common/cpu/transpose.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/reorder/reorder.hpp"

namespace stepladder::reorder::inline STEPLADDER_ISA {

inline constexpr std::int64_t line = 16;  // floats of a cache line

// Columns that are transposed together, of all rows. Blocks follow each other along the longer
// rows, so that few of these are open at a time: rows that are a multiple of 4 KiB apart share one
// set of the L1 cache, and each is a page of its own.
inline std::int64_t strip_of(std::int64_t from_stride, std::int64_t to_stride,
                             std::int64_t columns) {
  return to_stride > from_stride ? line : columns;
}

// As transpose().
inline void transpose_in_strips(const float* from, std::int64_t from_stride, float* to,
                                std::int64_t to_stride, std::int64_t rows, std::int64_t columns) {
  const std::int64_t strip = strip_of(from_stride, to_stride, columns);
  for (std::int64_t j = 0; j < columns; j += strip)
    transpose(from + j, from_stride, to + j * to_stride, to_stride, rows,
              std::min(strip, columns - j));
}

#if defined(__AVX512F__)
// A square of 16 x 16 in registers; its rows go past the caches, as whole lines: `to` and to_stride
// are multiples of a line. Pairs of rows are interleaved by elements, by pairs of elements, and
// their quarters gathered twice.
inline void stream_16x16(const float* from, std::int64_t from_stride, float* to,
                         std::int64_t to_stride) {
  __m512 a[16], b[16];
  for (int i = 0; i < 16; ++i) a[i] = _mm512_loadu_ps(from + i * from_stride);
  for (int i = 0; i < 16; i += 2) {
    b[i] = _mm512_unpacklo_ps(a[i], a[i + 1]);
    b[i + 1] = _mm512_unpackhi_ps(a[i], a[i + 1]);
  }
  const auto pairs = [](__m512 low, __m512 high, bool is_high) {
    const __m512d x = _mm512_castps_pd(low), y = _mm512_castps_pd(high);
    return _mm512_castpd_ps(is_high ? _mm512_unpackhi_pd(x, y) : _mm512_unpacklo_pd(x, y));
  };
  for (int i = 0; i < 16; i += 4)
    for (int j = 0; j < 4; ++j) a[i + j] = pairs(b[i + j / 2], b[i + 2 + j / 2], j % 2 != 0);
  // a[4 i + j] has columns j, j + 4, j + 8, j + 12 of rows 4 i … 4 i + 3.
  for (int j = 0; j < 4; ++j) {
    const __m512 even_top = _mm512_shuffle_f32x4(a[j], a[4 + j], 0x88);
    const __m512 odd_top = _mm512_shuffle_f32x4(a[j], a[4 + j], 0xdd);
    const __m512 even_bottom = _mm512_shuffle_f32x4(a[8 + j], a[12 + j], 0x88);
    const __m512 odd_bottom = _mm512_shuffle_f32x4(a[8 + j], a[12 + j], 0xdd);
    float* row = to + j * to_stride;
    _mm512_stream_ps(row, _mm512_shuffle_f32x4(even_top, even_bottom, 0x88));
    _mm512_stream_ps(row + 4 * to_stride, _mm512_shuffle_f32x4(odd_top, odd_bottom, 0x88));
    _mm512_stream_ps(row + 8 * to_stride, _mm512_shuffle_f32x4(even_top, even_bottom, 0xdd));
    _mm512_stream_ps(row + 12 * to_stride, _mm512_shuffle_f32x4(odd_top, odd_bottom, 0xdd));
  }
}

// The same, with whole squares streamed. The lines of `to` are whole.
inline void transpose_streaming(const float* from, std::int64_t from_stride, float* to,
                                std::int64_t to_stride, std::int64_t rows, std::int64_t columns) {
  const std::int64_t whole_rows = rows / line * line, whole_columns = columns / line * line;
  const std::int64_t strip = strip_of(from_stride, to_stride, whole_columns);
  for (std::int64_t first = 0; first < whole_columns; first += strip)
    for (std::int64_t i = 0; i < whole_rows; i += line)
      for (std::int64_t j = first; j < first + strip; j += line)
        stream_16x16(from + i * from_stride + j, from_stride, to + j * to_stride + i, to_stride);
  transpose_in_strips(from + whole_columns, from_stride, to + whole_columns * to_stride, to_stride,
                      whole_rows, columns - whole_columns);
  transpose_in_strips(from + whole_rows * from_stride, from_stride, to + whole_rows, to_stride,
                      rows - whole_rows, columns);
}
#endif

// transpose_matrix: transpose_in_strips, or transpose_streaming, which streams.
template <auto transpose_matrix, bool streams>
class Transposed final : public Plan {
 public:
  Transposed(const Problem& p, const Resources& resources) : p_(p) {
    if (p.changes_format()) throw Unsupported("converts layouts, not formats");
    if (p.from != Layout::nchw && p.to != Layout::nchw)
      throw Unsupported("supports conversions from and to NCHW only");
    const Layout other = p.from == Layout::nchw ? p.to : p.from;
    if (other == Layout::chwn) {
      rows_ = pitch_ = p.batch;
      columns_ = p.channels * p.pixels();
    } else {
      rows_ = p.channels;
      pitch_ = other == Layout::nhwc ? p.channels : block_channels;
      columns_ = p.pixels();
      images_ = p.batch;
    }
    blocks_ = ceil_div(rows_, pitch_);
    const std::int64_t y_pitch = p.from == Layout::nchw ? pitch_ : columns_;
    if (streams && (y_pitch % line != 0 || std::min({rows_, pitch_, columns_}) < line))
      throw Unsupported("streams squares of 16 x 16 into rows of whole cache lines only");
    threads_ = static_cast<int>(
        std::clamp<std::int64_t>(p.x_count() / min_elements_per_thread, 1, resources.threads));
  }

  void run(const Operands& o) override {
    if (threads_ == 1) return run_part(o, 0);
#pragma omp parallel for num_threads(threads_) schedule(static, 1)
    for (int part = 0; part < threads_; ++part) run_part(o, part);
  }

 private:
  static constexpr std::int64_t chunk = 256;  // columns; a multiple of a cache line
  static constexpr std::int64_t min_elements_per_thread = 32768;  // some microseconds

  void run_part(const Operands& o, int part) const {
    const auto* x = static_cast<const float*>(o.x);
    auto* y = static_cast<float*>(o.y);
    const std::int64_t chunks = ceil_div(columns_, chunk);
    const Range items = partition(images_ * blocks_ * chunks, threads_, part);
    for (std::int64_t item = items.begin; item < items.end; ++item) {
      const std::int64_t matrix = item / chunks, first = item % chunks * chunk;
      const std::int64_t columns = std::min(chunk, columns_ - first);
      const std::int64_t image = matrix / blocks_, first_row = matrix % blocks_ * pitch_;
      const std::int64_t rows = std::min(pitch_, rows_ - first_row);  // fewer in the last block
      const std::int64_t plain = (image * rows_ + first_row) * columns_ + first;
      const std::int64_t packed = (matrix * columns_ + first) * pitch_;
      if (p_.from == Layout::nchw) {
        if (rows < pitch_) std::fill_n(y + packed, columns * pitch_, 0.0F);  // padding channels
        copy(x + plain, columns_, y + packed, pitch_, rows, columns);
      } else {
        copy(x + packed, pitch_, y + plain, columns_, columns, rows);
      }
    }
    if constexpr (streams) finish_streaming();
  }

  // A matrix of one row is the same in both orders.
  static void copy(const float* x, std::int64_t x_pitch, float* y, std::int64_t y_pitch,
                   std::int64_t rows, std::int64_t columns) {
    if (rows == 1 && y_pitch == 1)
      std::copy_n(x, columns, y);
    else if (columns == 1 && x_pitch == 1)
      std::copy_n(x, rows, y);
    else
      transpose_matrix(x, x_pitch, y, y_pitch, rows, columns);
  }

  Problem p_;
  int threads_ = 1;
  // nchw is [images_, rows_, columns_], the other layout [images_, blocks_, columns_, pitch_].
  std::int64_t images_ = 1, blocks_ = 1;
  std::int64_t rows_ = 0, columns_ = 0, pitch_ = 0;
};

}  // namespace stepladder::reorder::inline STEPLADDER_ISA

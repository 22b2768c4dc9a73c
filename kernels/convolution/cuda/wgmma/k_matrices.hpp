// Operand B, which the TMA loads, as a K-contiguous matrix: filters [target channels, CRS] or dy
// [out channels, pixels]. CRS is ordered as in gather.hpp. Only .cu files include this.
#pragma once

#include "kernels/common/cuda/pack.hpp"
#include "kernels/common/cuda/plan.hpp"
#include "kernels/common/cuda/tensor_map_cache.hpp"
#include "kernels/common/cuda/tma.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/convolution/cuda/wgmma/gather.hpp"

namespace stepladder::convolution {

// FilterMatrix and DyMatrix are Operands of pack.hpp.
struct FilterMatrix {
  explicit FilterMatrix(const CudaCorrelation& correlation)
      : c(correlation),
        padded_channels(round_up(c.source_channels, chunk_channels)),
        extent(std::int64_t{c.groups} * c.target_channels),
        k(std::int64_t{c.taps()} * padded_channels),
        k_contiguous(c.w_source < c.w_target),
        by_group(static_cast<std::uint32_t>(c.target_channels)),
        by_tap(static_cast<std::uint32_t>(padded_channels)),
        by_tap_row(static_cast<std::uint32_t>(c.columns.taps > 0 ? c.columns.taps : 1)) {}

  CudaCorrelation c;
  int padded_channels;
  std::int64_t extent, k;
  bool k_contiguous;
  FastDivisor by_group, by_tap, by_tap_row;
  const float* data = nullptr;  // w

  // Index of an element in w, or -1 for the channels that pad a chunk.
  STEPLADDER_HOST_DEVICE int index(std::int64_t x, std::int64_t l) const {
    const auto [group, target] = by_group.divide(static_cast<std::uint32_t>(x));
    const auto [tap, source] = by_tap.divide(static_cast<std::uint32_t>(l));
    const auto [r, s] = by_tap_row.divide(tap);
    if (static_cast<int>(source) >= c.source_channels) return -1;
    return static_cast<int>(group) * c.w_group + static_cast<int>(target) * c.w_target +
           static_cast<int>(source) * c.w_source +
           (c.rows.kernel_first + static_cast<int>(r) * c.rows.kernel_step) * c.w_row +
           (c.columns.kernel_first + static_cast<int>(s) * c.columns.kernel_step) * c.w_column;
  }
  STEPLADDER_HOST_DEVICE bool holds(std::int64_t x, std::int64_t l) const {
    return x < extent && l < k;
  }
  STEPLADDER_HOST_DEVICE float element_or_zero(std::int64_t x, std::int64_t l) const {
    const int from = holds(x, l) ? index(x, l) : -1;
    return from < 0 ? 0 : data[from];
  }
};

struct DyMatrix {
  explicit DyMatrix(const CudaCorrelation& forward)
      : extent(std::int64_t{forward.groups} * forward.target_channels),
        k(forward.pixels()),
        k_contiguous(!forward.channels_last),
        strides(forward.target),
        by_image(static_cast<std::uint32_t>(forward.rows.pixels * forward.columns.pixels)),
        by_row(static_cast<std::uint32_t>(forward.columns.pixels)) {}

  std::int64_t extent, k;
  bool k_contiguous;
  CudaStrides strides;
  FastDivisor by_image, by_row;
  const float* data = nullptr;  // dy

  STEPLADDER_HOST_DEVICE bool holds(std::int64_t x, std::int64_t l) const {
    return x < extent && l < k;
  }
  STEPLADDER_HOST_DEVICE float element_or_zero(std::int64_t x, std::int64_t l) const {
    if (!holds(x, l)) return 0;
    const auto [image, within] = by_image.divide(static_cast<std::uint32_t>(l));
    const auto [row, column] = by_row.divide(within);
    return data[static_cast<int>(image) * strides.image + static_cast<int>(x) * strides.channel +
                static_cast<int>(row) * strides.row + static_cast<int>(column) * strides.column];
  }
};

// Such a matrix as the TMA reads it: in place, or packed in every run, in one part or two.
template <class Matrix, int parts>
class TmaOperand {
 public:
  TmaOperand(const Matrix& matrix, bool in_place) : matrix_(matrix), pitch_(round_up(matrix.k, 4)) {
    if (!in_place && matrix.k > 0)
      packed_ =
          device_memory(sizeof(float) * static_cast<std::size_t>(parts * matrix.extent * pitch_));
  }
  int extent() const { return static_cast<int>(matrix_.extent); }

  // The map for boxes of `box_rows` rows. It is empty if k is 0. box_rows and rounding are the same
  // in all runs of a plan.
  TensorMap prepare(const float* from, int box_rows, TmaRounding rounding) {
    if (matrix_.k == 0) return {};
    auto* const to = static_cast<float*>(packed_.get());
    if (to != nullptr) {
      Matrix source = matrix_;
      source.data = from;
      pack<parts>(source, to, pitch_);
    }
    const float* const matrix = to != nullptr ? to : from;
    const std::int64_t rows = to != nullptr ? parts * matrix_.extent : matrix_.extent;
    return maps_.get(
        matrix, [&] { return tensor_map(matrix, rows, matrix_.k, pitch_, box_rows, rounding); });
  }

 private:
  Matrix matrix_;
  std::int64_t pitch_;
  DeviceMemory packed_;  // [parts, extent, pitch]
  TensorMapCache maps_;
};

}  // namespace stepladder::convolution

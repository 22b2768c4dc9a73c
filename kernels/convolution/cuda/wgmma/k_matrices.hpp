// The factors that the TMA brings, as matrices along the depth of a product: filters [target channels,
// terms] and gradients [out channels, pixels]. Terms are those of cuda_gather.hpp. Only .cu files include this.
#pragma once

#include "kernels/common/cuda/plan.hpp"
#include "kernels/common/cuda/tma.hpp"
#include "kernels/common/cuda/pack.hpp"
#include "kernels/convolution/cuda/wgmma/gather.hpp"

namespace stepladder::convolution {

struct FilterMatrix {
  explicit FilterMatrix(const Correlation& correlation)
      : c(correlation),
        padded_channels((c.source_channels + piece_channels - 1) / piece_channels * piece_channels),
        extent(std::int64_t{c.groups} * c.target_channels),
        depth(std::int64_t{c.taps()} * padded_channels),
        along_depth(c.w_source < c.w_target),
        of_group(static_cast<std::uint32_t>(c.target_channels)),
        of_tap(static_cast<std::uint32_t>(padded_channels)),
        of_tap_row(static_cast<std::uint32_t>(c.columns.taps > 0 ? c.columns.taps : 1)) {}

  Correlation c;
  int padded_channels;
  std::int64_t extent, depth;
  bool along_depth;
  FastDivisor of_group, of_tap, of_tap_row;
  const float* at = nullptr;

  // Of w; -1 for the channels that fill a piece.
  STEPLADDER_HOST_DEVICE int index(std::int64_t x, std::int64_t l) const {
    const auto [group, target] = of_group.divide(static_cast<std::uint32_t>(x));
    const auto [tap, source] = of_tap.divide(static_cast<std::uint32_t>(l));
    const auto [r, s] = of_tap_row.divide(tap);
    if (static_cast<int>(source) >= c.source_channels) return -1;
    return static_cast<int>(group) * c.w_group + static_cast<int>(target) * c.w_target +
           static_cast<int>(source) * c.w_source +
           (c.rows.kernel_first + static_cast<int>(r) * c.rows.kernel_step) * c.w_row +
           (c.columns.kernel_first + static_cast<int>(s) * c.columns.kernel_step) * c.w_column;
  }
  STEPLADDER_HOST_DEVICE bool holds(std::int64_t x, std::int64_t l) const {
    return x < extent && l < depth;
  }
  STEPLADDER_HOST_DEVICE float element_or_zero(std::int64_t x, std::int64_t l) const {
    const int from = holds(x, l) ? index(x, l) : -1;
    return from < 0 ? 0 : at[from];
  }
};

struct GradientMatrix {
  explicit GradientMatrix(const Correlation& forward)
      : extent(std::int64_t{forward.groups} * forward.target_channels),
        depth(forward.pixels()),
        along_depth(!forward.channels_last),
        strides(forward.target),
        of_image(static_cast<std::uint32_t>(forward.rows.pixels * forward.columns.pixels)),
        of_row(static_cast<std::uint32_t>(forward.columns.pixels)) {}

  std::int64_t extent, depth;
  bool along_depth;
  CudaStrides strides;
  FastDivisor of_image, of_row;
  const float* at = nullptr;

  STEPLADDER_HOST_DEVICE bool holds(std::int64_t x, std::int64_t l) const {
    return x < extent && l < depth;
  }
  STEPLADDER_HOST_DEVICE float element_or_zero(std::int64_t x, std::int64_t l) const {
    if (!holds(x, l)) return 0;
    const auto [image, within] = of_image.divide(static_cast<std::uint32_t>(l));
    const auto [row, column] = of_row.divide(within);
    return at[static_cast<int>(image) * strides.image + static_cast<int>(x) * strides.channel +
              static_cast<int>(row) * strides.row + static_cast<int>(column) * strides.column];
  }
};

// A matrix laid out anew in every run, in one part or two, or where it lies. Without depth there is none.
template <class Matrix, int parts>
class DepthMatrix {
 public:
  DepthMatrix(const Matrix& matrix, bool where_it_lies)
      : matrix_(matrix), pitch_((matrix.depth + 3) / 4 * 4) {
    if (!where_it_lies && matrix.depth > 0)
      space_ =
          device_memory(sizeof(float) * static_cast<std::size_t>(parts * matrix.extent * pitch_));
  }
  int extent() const { return static_cast<int>(matrix_.extent); }

  // For boxes of `rows` rows.
  TensorMap prepare(const float* from, int rows, OnTheWay numbers) const {
    if (matrix_.depth == 0) return {};
    if (space_ == nullptr)
      return tensor_map(from, matrix_.extent, matrix_.depth, pitch_, rows, numbers);
    Matrix source = matrix_;
    source.at = from;
    auto* const to = static_cast<float*>(space_.get());
    turn<parts>(source, to, pitch_);
    return tensor_map(to, parts * matrix_.extent, matrix_.depth, pitch_, rows, numbers);
  }

 private:
  Matrix matrix_;
  std::int64_t pitch_;
  DeviceMemory space_;  // [parts, extent, pitch]
};

}  // namespace stepladder::convolution

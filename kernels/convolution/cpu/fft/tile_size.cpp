#include "kernels/convolution/cpu/fft/tile_size.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/common/integer_math.hpp"

namespace stepladder::convolution {
namespace {

// Tiles of `size` elements along an axis of `pixels` outputs (in backward_weights, pixels of dy).
// 0 if the filter is larger than a tile.
std::int64_t tiles_along(std::int64_t pixels, std::int64_t kernel, std::int64_t size) {
  return kernel <= size ? ceil_div(pixels, size - kernel + 1) : 0;
}

// Time in FLOPs of the products. Transforms run at a third of the rate of the products; the spectra
// of the filters are written to memory and read again, 4 bytes per element and pair of channels at
// 16 FLOPs a byte.
double cost(const Problem& p, double tiles, double elements) {
  constexpr double slower = 3, filter_traffic = 4 * 16;
  const double images = double(p.batch) * tiles;
  const double pairs = double(p.in_channels * p.group_out());
  const double transforms = images * double(p.in_channels + p.out_channels) + pairs;
  return elements *
         ((4 * images + filter_traffic) * pairs + slower * 2.5 * std::log2(elements) * transforms);
}

template <int... sizes>
constexpr std::array<std::int64_t, sizeof...(sizes)> as_array(
    std::integer_sequence<int, sizes...>) {
  return {sizes...};
}

}  // namespace

FftTile fft_tile(const Problem& p) {
  if (p.stride_h != 1 || p.stride_w != 1) throw Unsupported("FFT supports stride 1 only");
  if (std::max(p.kernel_h, p.kernel_w) > FftTile::most)
    throw Unsupported(
        fmt::format("supports filters of up to {0} x {0}, the largest tile", FftTile::most));
  const bool data = p.direction == Direction::backward_data;
  FftTile best{};
  double least = 0;
  for (const std::int64_t rows : as_array(FftTile::Sizes{}))
    for (const std::int64_t columns : as_array(FftTile::Sizes{})) {
      const std::int64_t tiles = tiles_along(data ? p.height : p.out_h(), p.kernel_h, rows) *
                                 tiles_along(data ? p.width : p.out_w(), p.kernel_w, columns);
      if (tiles == 0) continue;
      const double time = cost(p, double(tiles), double(rows * columns));
      if (best.rows == 0 || time < least) {
        best = {rows, columns};
        least = time;
      }
    }
  return best;
}

}  // namespace stepladder::convolution

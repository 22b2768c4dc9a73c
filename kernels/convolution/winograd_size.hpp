// The problems that the Winograd variants support, and the tile size for each.
#pragma once

#include <cstdint>

#include "kernels/common/integer_math.hpp"
#include "kernels/convolution/convolution.hpp"

namespace stepladder::convolution {

// Products per channel and image when tiles of `tile` x `tile` elements cover the image. Static,
// because files built for several ISAs include it.
static inline std::int64_t winograd_products(const Problem& p, std::int64_t tile) {
  const bool data = p.direction == Direction::backward_data;
  const std::int64_t outputs = tile - p.kernel_h + 1;
  const std::int64_t tile_rows = ceil_div(data ? p.height : p.out_h(), outputs);
  const std::int64_t tile_columns = ceil_div(data ? p.width : p.out_w(), outputs);
  return tile_rows * tile_columns * tile * tile;
}

// Calls make<pairs, kernel>() with the number of point pairs (winograd_points.hpp) that needs the
// fewest products. Throws Unsupported unless the filter is 3 x 3 or 5 x 5 with stride 1.
template <class Make>
auto with_fewest_products(const Problem& p, const Make& make) {
  if (p.stride_h != 1 || p.stride_w != 1) throw Unsupported("Winograd supports stride 1 only");
  if (p.kernel_h != p.kernel_w || (p.kernel_h != 3 && p.kernel_h != 5))
    throw Unsupported("supports filters of 3 x 3 and 5 x 5 only");
  const bool large = winograd_products(p, 8) < winograd_products(p, 6);
  if (p.kernel_h == 3)
    return large ? make.template operator()<3, 3>() : make.template operator()<2, 3>();
  return large ? make.template operator()<3, 5>() : make.template operator()<2, 5>();
}

}  // namespace stepladder::convolution

// Which problems Winograd's method is built for here, and with tiles of which size.
#pragma once

#include <cstdint>

#include "kernels/convolution/convolution.hpp"

namespace stepladder::convolution {

// Products per channel and image when tiles of `tile` cover the images. Static: files for several
// instruction sets include it.
static inline std::int64_t winograd_products(const Problem& p, std::int64_t tile) {
  const bool data = p.direction == Direction::backward_data;
  const std::int64_t outputs = tile - p.kernel_h + 1;
  const std::int64_t down = ((data ? p.height : p.out_h()) + outputs - 1) / outputs;
  const std::int64_t along = ((data ? p.width : p.out_w()) + outputs - 1) / outputs;
  return down * along * tile * tile;
}

// make<pairs, kernel>() with the pairs of points, see winograd_points.hpp, that need fewest products.
template <class Make>
auto with_fewest_products(const Problem& p, const Make& make) {
  if (p.stride_h != 1 || p.stride_w != 1) throw Unsupported("Winograd needs a stride of 1");
  if (p.kernel_h != p.kernel_w || (p.kernel_h != 3 && p.kernel_h != 5))
    throw Unsupported("built for kernels of 3 x 3 and 5 x 5");
  const bool large = winograd_products(p, 8) < winograd_products(p, 6);
  if (p.kernel_h == 3)
    return large ? make.template operator()<3, 3>() : make.template operator()<2, 3>();
  return large ? make.template operator()<3, 5>() : make.template operator()<2, 5>();
}

}  // namespace stepladder::convolution

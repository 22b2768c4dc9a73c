#include "kernels/matmul/opencl/item_tile.hpp"

#include <fmt/format.h>

namespace stepladder::matmul {

opencl::Range ItemTile::elements() const {
  return {static_cast<std::size_t>(width * vectors), static_cast<std::size_t>(rows)};
}

std::string ItemTile::options() const {
  return fmt::format("-DROWS={} -DWIDTH={} -DVECTORS={} -DLOCAL_X=1 -DLOCAL_Y=1", rows, width,
                     vectors);
}

std::string ItemTile::name() const { return fmt::format("tiles of {}x{}", rows, width * vectors); }

ItemTile item_tile_for(const opencl::Session& session) {
  cl_uint width = 0;
  opencl::check(clGetDeviceInfo(session.device, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, sizeof width,
                                &width, nullptr),
                "clGetDeviceInfo");
  if (width >= 16) return {8, 16, 3};
  return {6, width >= 8 ? 8 : 4, 2};
}

}  // namespace stepladder::matmul

#include "kernels/convolution/opencl/plan.hpp"

#include <algorithm>
#include <utility>

#include "kernels/common/integer_math.hpp"
#include "kernels/common/opencl/register_tile.cl.hpp"
#include "kernels/convolution/opencl/geometry.cl.hpp"

namespace stepladder::convolution {
namespace {

// Kernels also compute the indices of padding.
std::int64_t largest_operand(const Problem& p) {
  const std::int64_t padded =
      p.batch * p.in_channels * (p.height + 2 * p.pad_h) * (p.width + 2 * p.pad_w);
  return std::max({padded, p.w_count(), p.y_count()});
}

opencl::Access access(const Problem& p, Direction writes) {
  return p.direction == writes ? opencl::Access::write : opencl::Access::read;
}

}  // namespace

OpenClLaunch launch_over_items(std::int64_t count) {
  constexpr opencl::Range items{.columns = 64, .rows = 1};
  return {{ceil_div(static_cast<std::size_t>(count), items.columns), 1}, items};
}

OpenClLaunch launch_over_matrix(const Problem& p, opencl::Range elements, opencl::Range items,
                                const std::string& options) {
  const auto pixels = static_cast<std::size_t>(p.batch * p.out_h() * p.out_w());
  return {{ceil_div(pixels, elements.columns),
           static_cast<std::size_t>(p.groups) *
               ceil_div(static_cast<std::size_t>(p.group_out()), elements.rows)},
          items,
          options};
}

OpenClLaunch launch_of(const Problem& p, const opencl::RegisterTile& sizes) {
  return launch_over_matrix(p, sizes.elements(), sizes.items(), sizes.options());
}

void require_forward(const Problem& p) {
  if (p.direction != Direction::forward) throw Unsupported("computes forward alone");
}

OpenClPlan::OpenClPlan(const Problem& p, const Resources& resources, const char* source,
                       const OpenClLaunch& launch, std::string remark)
    : remark_(std::move(remark)),
      geometry_(opencl::ints(p.batch, p.in_channels, p.height, p.width, p.out_channels, p.out_h(),
                             p.out_w(), p.kernel_h, p.kernel_w, p.stride_h, p.stride_w, p.pad_h,
                             p.pad_w, p.group_in(), p.group_out())),
      session_(opencl::session(resources.threads, largest_operand(p))),
      kernel_(session_, std::string(common::register_tile_cl) + geometry_cl + source,
              direction(p).c_str(), launch.options),
      groups_(launch.groups),
      items_(launch.items),
      x_(session_, opencl::float_bytes(p.x_count()), access(p, Direction::backward_data)),
      w_(session_, opencl::float_bytes(p.w_count()), access(p, Direction::backward_weights)),
      y_(session_, opencl::float_bytes(p.y_count()), access(p, Direction::forward)) {}

void OpenClPlan::run(const Operands& o) {
  kernel_.set(geometry_, x_.before_kernels(o.x), w_.before_kernels(o.w), y_.before_kernels(o.y));
  kernel_.start(groups_, items_);
  x_.after_kernels(o.x);
  w_.after_kernels(o.w);
  y_.after_kernels(o.y);
  opencl::finish(session_);
}

}  // namespace stepladder::convolution

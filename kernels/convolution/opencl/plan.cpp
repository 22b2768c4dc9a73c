#include "kernels/convolution/opencl/plan.hpp"

#include <algorithm>

#include "kernels/common/integer_math.hpp"
#include "kernels/common/opencl/register_tile.cl.hpp"
#include "kernels/convolution/opencl/geometry.cl.hpp"

namespace stepladder::convolution {
namespace {

const opencl::Session& session_for(const Problem& p, int threads) {
  // Kernels also compute the indices of padding.
  const std::int64_t padded =
      p.batch * p.in_channels * (p.height + 2 * p.pad_h) * (p.width + 2 * p.pad_w);
  opencl::require_int_indices(std::max({padded, p.w_count(), p.y_count()}));
  return opencl::session(threads);
}

std::size_t bytes(std::int64_t count) { return static_cast<std::size_t>(count) * sizeof(float); }

opencl::Access access(const Problem& p, Direction writes) {
  return p.direction == writes ? opencl::Access::write : opencl::Access::read;
}

}  // namespace

OpenClGeometry::OpenClGeometry(const Problem& p)
    : batch(static_cast<cl_int>(p.batch)),
      channels(static_cast<cl_int>(p.in_channels)),
      height(static_cast<cl_int>(p.height)),
      width(static_cast<cl_int>(p.width)),
      out_channels(static_cast<cl_int>(p.out_channels)),
      out_height(static_cast<cl_int>(p.out_h())),
      out_width(static_cast<cl_int>(p.out_w())),
      kernel_h(static_cast<cl_int>(p.kernel_h)),
      kernel_w(static_cast<cl_int>(p.kernel_w)),
      stride_h(static_cast<cl_int>(p.stride_h)),
      stride_w(static_cast<cl_int>(p.stride_w)),
      pad_h(static_cast<cl_int>(p.pad_h)),
      pad_w(static_cast<cl_int>(p.pad_w)),
      group_in(static_cast<cl_int>(p.group_in())),
      group_out(static_cast<cl_int>(p.group_out())) {}

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
                       const OpenClLaunch& launch)
    : geometry_(p),
      session_(session_for(p, resources.threads)),
      kernel_(session_, std::string(common::register_tile_cl) + geometry_cl + source,
              direction(p).c_str(), launch.options),
      groups_(launch.groups),
      items_(launch.items),
      x_(session_, bytes(p.x_count()), access(p, Direction::backward_data)),
      w_(session_, bytes(p.w_count()), access(p, Direction::backward_weights)),
      y_(session_, bytes(p.y_count()), access(p, Direction::forward)) {}

void OpenClPlan::run(const Operands& o) {
  kernel_.set(geometry_, x_.before_kernels(o.x), w_.before_kernels(o.w), y_.before_kernels(o.y));
  kernel_.start(groups_, items_);
  x_.after_kernels(o.x);
  w_.after_kernels(o.w);
  y_.after_kernels(o.y);
  opencl::finish(session_);
}

}  // namespace stepladder::convolution

#include "kernels/max_pool/opencl/plan.hpp"

#include <algorithm>

#include "kernels/common/integer_math.hpp"
#include "kernels/max_pool/opencl/geometry.cl.hpp"

namespace stepladder::max_pool {
namespace {

constexpr opencl::Range group{.columns = 64, .rows = 1};

const opencl::Session& session_for(const Problem& p, int threads) {
  opencl::require_int_indices(std::max(p.x_count(), p.y_count()));
  return opencl::session(threads);
}

std::size_t count(std::int64_t elements) { return static_cast<std::size_t>(elements); }

}  // namespace

OpenClGeometry::OpenClGeometry(const Problem& p)
    : planes(static_cast<cl_int>(p.planes())),
      height(static_cast<cl_int>(p.height)),
      width(static_cast<cl_int>(p.width)),
      out_height(static_cast<cl_int>(p.out_h())),
      out_width(static_cast<cl_int>(p.out_w())),
      window_h(static_cast<cl_int>(p.window_h)),
      window_w(static_cast<cl_int>(p.window_w)),
      stride_h(static_cast<cl_int>(p.stride_h)),
      stride_w(static_cast<cl_int>(p.stride_w)),
      pad_h(static_cast<cl_int>(p.pad_h)),
      pad_w(static_cast<cl_int>(p.pad_w)) {}

OpenClPlan::OpenClPlan(const Problem& p, const Resources& resources, const char* source,
                       std::int64_t items)
    : geometry_(p),
      session_(session_for(p, resources.threads)),
      kernel_(session_, std::string(geometry_cl) + source, direction(p).c_str(), ""),
      groups_{ceil_div(count(items), group.columns), 1},
      x_(session_, count(p.x_count()) * sizeof(float),
         p.direction == Direction::forward ? opencl::Access::read : opencl::Access::write),
      y_(session_, count(p.y_count()) * sizeof(float),
         p.direction == Direction::forward ? opencl::Access::write : opencl::Access::read),
      argmax_(session_, count(p.y_count()),
              p.direction == Direction::forward ? opencl::Access::write : opencl::Access::read) {}

void OpenClPlan::run(const Operands& o) {
  kernel_.set(geometry_, x_.before_kernels(o.x), y_.before_kernels(o.y),
              argmax_.before_kernels(o.argmax));
  kernel_.start(groups_, group);
  x_.after_kernels(o.x);
  y_.after_kernels(o.y);
  argmax_.after_kernels(o.argmax);
  opencl::finish(session_);
}

}  // namespace stepladder::max_pool

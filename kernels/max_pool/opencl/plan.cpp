#include "kernels/max_pool/opencl/plan.hpp"

#include <algorithm>

#include "kernels/common/integer_math.hpp"
#include "kernels/max_pool/opencl/geometry.cl.hpp"

namespace stepladder::max_pool {
namespace {

constexpr opencl::Range group{.columns = 64, .rows = 1};

opencl::Access access(const Problem& p, Direction writes) {
  return p.direction == writes ? opencl::Access::write : opencl::Access::read;
}

}  // namespace

OpenClPlan::OpenClPlan(const Problem& p, const Resources& resources, const char* source,
                       std::int64_t items)
    : geometry_(opencl::ints(p.planes(), p.height, p.width, p.out_h(), p.out_w(), p.window_h,
                             p.window_w, p.stride_h, p.stride_w, p.pad_h, p.pad_w)),
      session_(opencl::session(resources.threads, std::max(p.x_count(), p.y_count()))),
      kernel_(session_, std::string(geometry_cl) + source, direction(p).c_str(), ""),
      groups_{ceil_div(static_cast<std::size_t>(items), group.columns), 1},
      x_(session_, opencl::float_bytes(p.x_count()), access(p, Direction::backward)),
      y_(session_, opencl::float_bytes(p.y_count()), access(p, Direction::forward)),
      argmax_(session_, static_cast<std::size_t>(p.y_count()), access(p, Direction::forward)) {}

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

#include "kernels/sgd_update/opencl/plan.hpp"

#include <fmt/format.h>

#include "kernels/common/integer_math.hpp"
#include "kernels/sgd_update/opencl/rules.cl.hpp"
#include "kernels/sgd_update/rules.hpp"

namespace stepladder::sgd_update {
namespace {

constexpr opencl::Range group{.columns = 64, .rows = 1};

// 0 if the optimizer has fewer states.
std::size_t bytes_of_state(const Problem& p, int number) {
  return number <= states(p.optimizer) ? opencl::float_bytes(p.count) : 0;
}

}  // namespace

OpenClPlan::OpenClPlan(const Problem& p, const Resources& resources, const char* source, int lanes,
                       const char* number)
    : p_(p),
      session_(opencl::session(resources.threads, p.count)),
      kernel_(session_, std::string(rules_cl) + source, "update",
              fmt::format("-DOPTIMIZER={} -DNUMBER={}", static_cast<int>(p.optimizer), number)),
      groups_{ceil_div(static_cast<std::size_t>(p.count),
                       group.columns * static_cast<std::size_t>(lanes)),
              1},
      weights_(session_, opencl::float_bytes(p.count), opencl::Access::read_and_write),
      gradient_(session_, opencl::float_bytes(p.count), opencl::Access::read),
      state1_(session_, bytes_of_state(p, 1), opencl::Access::read_and_write),
      state2_(session_, bytes_of_state(p, 2), opencl::Access::read_and_write) {}

void OpenClPlan::run(const Operands& o) {
  kernel_.set(static_cast<cl_int>(p_.count), Constants<float>(p_, o),
              weights_.before_kernels(o.weights), gradient_.before_kernels(o.gradient),
              state1_.before_kernels(o.state1), state2_.before_kernels(o.state2));
  kernel_.start(groups_, group);
  weights_.after_kernels(o.weights);
  state1_.after_kernels(o.state1);
  state2_.after_kernels(o.state2);
  opencl::finish(session_);
}

}  // namespace stepladder::sgd_update

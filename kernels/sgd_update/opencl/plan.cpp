#include "kernels/sgd_update/opencl/plan.hpp"

#include <fmt/format.h>

#include "kernels/common/integer_math.hpp"
#include "kernels/sgd_update/opencl/rules.cl.hpp"
#include "kernels/sgd_update/rules.hpp"

namespace stepladder::sgd_update {
namespace {

constexpr opencl::Range group{.columns = 64, .rows = 1};

struct OpenClConstants {  // the same as Constants of rules.cl
  explicit OpenClConstants(const Constants<float>& c)
      : learning_rate(c.learning_rate),
        epsilon(c.epsilon),
        weight_decay(c.weight_decay),
        momentum(c.momentum),
        rho(c.rho),
        one_minus_rho(c.one_minus_rho),
        beta1(c.beta1),
        one_minus_beta1(c.one_minus_beta1),
        beta2(c.beta2),
        one_minus_beta2(c.one_minus_beta2),
        decays(c.decays ? 1 : 0) {}
  cl_float learning_rate, epsilon, weight_decay, momentum;
  cl_float rho, one_minus_rho, beta1, one_minus_beta1, beta2, one_minus_beta2;
  cl_int decays;
};

const opencl::Session& session_for(const Problem& p, int threads) {
  opencl::require_int_indices(p.count);
  return opencl::session(threads);
}

std::size_t bytes(const Problem& p, bool exists = true) {
  return exists ? static_cast<std::size_t>(p.count) * sizeof(float) : 0;
}

}  // namespace

OpenClPlan::OpenClPlan(const Problem& p, const Resources& resources, const char* source, int lanes,
                       const char* number)
    : p_(p),
      session_(session_for(p, resources.threads)),
      kernel_(session_, std::string(rules_cl) + source, "update",
              fmt::format("-DOPTIMIZER={} -DNUMBER={}", static_cast<int>(p.optimizer), number)),
      groups_{ceil_div(static_cast<std::size_t>(p.count),
                       group.columns * static_cast<std::size_t>(lanes)),
              1},
      weights_(session_, bytes(p), opencl::Access::read_and_write),
      gradient_(session_, bytes(p), opencl::Access::read),
      state1_(session_, bytes(p, states(p.optimizer) > 0), opencl::Access::read_and_write),
      state2_(session_, bytes(p, states(p.optimizer) > 1), opencl::Access::read_and_write) {}

void OpenClPlan::run(const Operands& o) {
  kernel_.set(static_cast<cl_int>(p_.count), OpenClConstants(Constants<float>(p_, o)),
              weights_.before_kernels(o.weights), gradient_.before_kernels(o.gradient),
              state1_.before_kernels(o.state1), state2_.before_kernels(o.state2));
  kernel_.start(groups_, group);
  weights_.after_kernels(o.weights);
  state1_.after_kernels(o.state1);
  state2_.after_kernels(o.state2);
  opencl::finish(session_);
}

}  // namespace stepladder::sgd_update

#include "kernels/matmul/opencl/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kernels/common/integer_math.hpp"
#include "kernels/common/opencl/register_tile.cl.hpp"
#include "kernels/matmul/opencl/elements.cl.hpp"

namespace stepladder::matmul {

const opencl::Session& session_for(const Problem& p, int threads) {
  return opencl::session(threads, std::max({p.m * p.n, p.m * p.k, p.k * p.n}));
}

std::string options_of(const Problem& p, const std::string& of_tile) {
  return fmt::format("-DTRANSPOSE_A={:d} -DTRANSPOSE_B={:d} {}", p.transpose_a, p.transpose_b,
                     of_tile);
}

OpenClTile tile_of(const opencl::RegisterTile& sizes) {
  return {sizes.elements(), sizes.items(), sizes.options()};
}

OpenClPlan::OpenClPlan(const Problem& p, const Resources& resources, const char* source,
                       const OpenClTile& tile, std::string remark)
    : p_(p),
      remark_(std::move(remark)),
      session_(session_for(p, resources.threads)),
      kernel_(session_, std::string(common::register_tile_cl) + elements_cl + source, "multiply",
              options_of(p, tile.options)),
      groups_{ceil_div(static_cast<std::size_t>(p.n), tile.elements.columns),
              ceil_div(static_cast<std::size_t>(p.m), tile.elements.rows)},
      items_(tile.items),
      a_(session_, opencl::float_bytes(p.m * p.k), opencl::Access::read),
      b_(session_, opencl::float_bytes(p.k * p.n), opencl::Access::read),
      c_(session_, opencl::float_bytes(p.m * p.n), opencl::Access::write) {
  if (tile.rows_first) std::swap(groups_.columns, groups_.rows);
}

void OpenClPlan::run(const Operands& o) {
  kernel_.set(static_cast<cl_int>(p_.m), static_cast<cl_int>(p_.n), static_cast<cl_int>(p_.k),
              a_.before_kernels(o.a), b_.before_kernels(o.b), c_.before_kernels(o.c));
  kernel_.start(groups_, items_);
  c_.after_kernels(o.c);
  opencl::finish(session_);
}

}  // namespace stepladder::matmul

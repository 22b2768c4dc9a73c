// The plans of the rungs on AMX.
#pragma once

#include "kernels/common/cpu/narrow/amx_kernel.hpp"
#include "kernels/low_precision/cpu/narrow_rows.hpp"

namespace stepladder::low_precision {

// Throws Unsupported unless the CPU multiplies the format by AMX.
template <bool prepacks = false>
std::unique_ptr<Plan> amx_plan(const Problem& problem, const Resources& resources) {
  if (problem.format != Format::bf16 && problem.format != Format::int8)
    throw Unsupported(std::string("AMX multiplies bf16 and int8, not ") + name_of(problem.format));
  require(problem.format == Format::bf16 ? Extension::amx_bf16 : Extension::amx_int8);
  require_dot_products(problem.format);  // they pack and store
  if (problem.format == Format::bf16)
    return std::make_unique<PackedProduct<DotBf16, AmxKernel, NarrowRows<DotBf16>, prepacks>>(
        NarrowRows<DotBf16>(problem), resources.threads);
  return std::make_unique<PackedProduct<DotInt8, AmxKernel, NarrowRows<DotInt8>, prepacks>>(
      NarrowRows<DotInt8>(problem), resources.threads);
}

}  // namespace stepladder::low_precision

// The instructions of each format (kernels/common/cpu/narrow/dot_products.hpp).
#pragma once

#include "kernels/common/cpu/extensions.hpp"
#include "kernels/common/cpu/narrow/dot_products.hpp"
#include "kernels/low_precision/low_precision.hpp"

namespace stepladder::low_precision {

using namespace narrow;

// Throws Unsupported, with the instruction set that the CPU lacks.
void require_dot_products(Format format);

// Calls function.template operator()<Dot>() for the format.
template <class Function>
void for_dot(Format format, Function&& function) {
  switch (format) {
    case Format::bf16:
      return function.template operator()<DotBf16>();
    case Format::fp16:
      return function.template operator()<DotFloat>();
    case Format::int8:
      return function.template operator()<DotInt8>();
    case Format::binary:
      return function.template operator()<DotBits>();
  }
}

}  // namespace stepladder::low_precision

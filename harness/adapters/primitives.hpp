// The primitives. Each is defined in the file of its name.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "harness/problem/primitive_type.hpp"

namespace stepladder {

const PrimitiveType& matmul_type();
const PrimitiveType& convolution_type();
const PrimitiveType& max_pool_type();
const PrimitiveType& average_pool_type();
const PrimitiveType& sgd_update_type();
const PrimitiveType& all_reduce_type();
const PrimitiveType& layers_type();
const PrimitiveType& reorder_type();
const PrimitiveType& low_precision_type();

// In the order of a training step: matmul, convolution, max_pool, average_pool, sgd_update,
// all_reduce, layers; then reorder and low_precision.
std::span<const PrimitiveType* const> primitives();
const PrimitiveType& primitive(std::string_view name);  // throws UnknownName

// `kind` as an unknown name of it is reported: followed by the primitives of a build without the
// others.
std::string in_this_build(const char* kind);

}  // namespace stepladder

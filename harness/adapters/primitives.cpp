#include "harness/adapters/primitives.hpp"

#include "harness/io/nearest.hpp"

namespace stepladder {

std::span<const PrimitiveType* const> primitives() {
  static const PrimitiveType* const all[] = {
      &matmul_type(),       &convolution_type(), &max_pool_type(),
      &average_pool_type(), &sgd_update_type(),  &all_reduce_type(),
      &layers_type(),       &reorder_type(),     &low_precision_type()};
  return all;
}

const PrimitiveType& primitive(std::string_view name) {
  std::vector<std::string> names;
  for (const PrimitiveType* type : primitives()) {
    if (type->name() == name) return *type;
    names.emplace_back(type->name());
  }
  throw UnknownName("primitive", std::string(name), names);
}

}  // namespace stepladder

#include "harness/adapters/primitives.hpp"

#include "harness/io/nearest.hpp"

namespace stepladder {

#ifdef STEPLADDER_PRIMITIVES  // a build without the others
static constexpr const char* kind =
    "primitive of a build for " STEPLADDER_PRIMITIVES " alone (`make build` builds all)";
#else
static constexpr const char* kind = "primitive";
#define STEPLADDER_TYPES                                                                           \
  &matmul_type(), &convolution_type(), &max_pool_type(), &average_pool_type(), &sgd_update_type(), \
      &all_reduce_type(), &layers_type(), &reorder_type(), &low_precision_type()
#endif

std::span<const PrimitiveType* const> primitives() {
  static const PrimitiveType* const all[] = {STEPLADDER_TYPES};
  return all;
}

const PrimitiveType& primitive(std::string_view name) {
  std::vector<std::string> names;
  for (const PrimitiveType* type : primitives()) {
    if (type->name() == name) return *type;
    names.emplace_back(type->name());
  }
  throw UnknownName(kind, std::string(name), names);
}

}  // namespace stepladder

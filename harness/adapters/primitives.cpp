#include "harness/adapters/primitives.hpp"

#include <fmt/format.h>

#include "harness/io/nearest.hpp"

namespace stepladder {

#ifdef STEPLADDER_PRIMITIVES  // a build without the others
std::string in_this_build(const char* kind) {
  return fmt::format("{} of a build for {} alone (`make build` builds all)", kind,
                     STEPLADDER_PRIMITIVES);
}
#else
std::string in_this_build(const char* kind) { return kind; }
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
  throw UnknownName(in_this_build("primitive"), std::string(name), names);
}

}  // namespace stepladder

#include "kernels/common/cpu/partition.hpp"

#include <algorithm>

namespace stepladder::matmul {

Range part_of(std::int64_t size, std::int64_t unit, std::int64_t part, std::int64_t parts) {
  const std::int64_t units = (size + unit - 1) / unit;
  return {std::min(size, units * part / parts * unit),
          std::min(size, units * (part + 1) / parts * unit)};
}

}  // namespace stepladder::matmul

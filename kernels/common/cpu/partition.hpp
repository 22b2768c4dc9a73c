// Division of an index range among threads, or of a dimension into blocks of nearly equal size.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/common/integer_math.hpp"
#include "kernels/common/isa.hpp"

namespace stepladder {

struct Range {
  std::int64_t begin, end;  // [begin, end)
};

inline namespace STEPLADDER_ISA {

// Part `index` of [0, count), divided into `parts`; 0 <= index < parts. Every part but the last
// begins and ends at multiples of `granule`; sizes differ by at most one granule. Some parts are
// empty where there are more parts than granules.
constexpr Range partition(std::int64_t count, std::int64_t parts, std::int64_t index,
                          std::int64_t granule = 1) {
  const std::int64_t granules = ceil_div(count, granule);
  return {std::min(count, granules * index / parts * granule),
          std::min(count, granules * (index + 1) / parts * granule)};
}

}  // namespace STEPLADDER_ISA
}  // namespace stepladder

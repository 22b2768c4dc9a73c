// Shares of the work for threads.
#pragma once

#include <cstdint>

namespace stepladder::matmul {

struct Range {
  std::int64_t begin, end;
};

// Share `part` of `parts` of [0, size). Shares begin at multiples of `unit` and differ by at most
// one unit; one is empty when there are more parts than units.
Range part_of(std::int64_t size, std::int64_t unit, std::int64_t part, std::int64_t parts);

}  // namespace stepladder::matmul

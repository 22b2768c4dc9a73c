// Who works on what when a vector goes round a ring of ranks: rank r takes from rank r - 1 and hands on to
// rank r + 1. Of `ranks` parts each rank has one at each of 2 (ranks - 1) steps:
//
//     sum      first step 0 … ranks - 2: rank r adds its own to part r - step - 1, as rank r - 1 has it.
//              After the last of them the sum of part r + 1 is complete on rank r.
//     gather   as many steps: rank r copies part r - step from rank r - 1
#pragma once

#include <algorithm>
#include <cstdint>

namespace stepladder::all_reduce {

struct Part {
  std::int64_t first, count;
};

// Part `index` of so many; any index, which is taken modulo `parts`. Parts begin at multiples of `grain`
// elements, and differ by at most one grain; some are empty when there are fewer grains than parts.
inline Part part_of(const Part& whole, int parts, int index, std::int64_t grain = 1) {
  const std::int64_t k = (index % parts + parts) % parts;
  const std::int64_t grains = (whole.count + grain - 1) / grain;
  const std::int64_t first = std::min(whole.count, grains * k / parts * grain);
  const std::int64_t last = std::min(whole.count, grains * (k + 1) / parts * grain);
  return {whole.first + first, last - first};
}

inline int part_to_sum(int rank, int step) { return rank - step - 1; }
inline int part_to_gather(int rank, int step) { return rank - step; }

}  // namespace stepladder::all_reduce

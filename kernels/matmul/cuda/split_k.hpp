// Split-K: K divided into slices, so that a C of few tiles still fills a GPU. A block computes one
// slice of one tile; the partials are then added in a fixed order, never atomically, so every run
// gives the same bits.
//
//     K →   [ slice 0 | slice 1 | … ]
#pragma once

#include <algorithm>

#include "kernels/common/host_device.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/matmul/matmul.hpp"

namespace stepladder::matmul {

// A slice is a whole number of steps of tile_k; the slices differ by at most one step.
struct SplitK {
  int slices, steps;  // steps of a slice
  int longer;         // the first `longer` slices have one step more

  STEPLADDER_HOST_DEVICE int first_step(int slice) const {
    return slice * steps + (slice < longer ? slice : longer);
  }
  STEPLADDER_HOST_DEVICE int steps_of(int slice) const { return steps + (slice < longer ? 1 : 0); }
};

inline int k_steps(const Problem& p, int tile_k) { return static_cast<int>(ceil_div(p.k, tile_k)); }

inline SplitK split_k(int slices, const Problem& p, int tile_k) {
  const int steps = k_steps(p, tile_k);
  return {slices, steps / slices, steps % slices};
}

// As many slices as the multiprocessors can run at one block each.
inline int slices_for(const Problem& p, int tile_k, unsigned tiles, int multiprocessors) {
  constexpr int min_steps = 2;  // with one step no computation would overlap the copies
  return std::clamp(multiprocessors / static_cast<int>(tiles), 1,
                    std::max(k_steps(p, tile_k) / min_steps, 1));
}

}  // namespace stepladder::matmul

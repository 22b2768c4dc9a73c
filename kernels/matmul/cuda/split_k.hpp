// k cut into slices, so that a C of few tiles fills a GPU nevertheless: each block adds the products of
// one slice for one tile, and somebody adds the slices.
//
//     k →   [ slice 0 | slice 1 | … ]
//
// They are added in their order, never atomically: every run gives the same bits.
#pragma once

#include <algorithm>

#include "kernels/common/host_device.hpp"
#include "kernels/matmul/matmul.hpp"

namespace stepladder::matmul {

// Slices are whole steps, each as deep as a tile, and none has more than one more than another.
struct Split {
  int slices, steps;  // steps of a slice …
  int longer;         // … and one more of so many slices, the first ones

  STEPLADDER_HOST_DEVICE int first_step(int slice) const {
    return slice * steps + (slice < longer ? slice : longer);
  }
  STEPLADDER_HOST_DEVICE int steps_of(int slice) const { return steps + (slice < longer ? 1 : 0); }
};

inline int steps_of(const Problem& p, int depth) {
  return static_cast<int>((p.k + depth - 1) / depth);
}

inline Split split_into(int slices, const Problem& p, int depth) {
  const int steps = steps_of(p, depth);
  return {slices, steps / slices, steps % slices};
}

// As many as leave each block a multiprocessor.
inline int slices_for(const Problem& p, int depth, unsigned tiles, int multiprocessors) {
  constexpr int least_steps = 2;  // one would compute nothing while its tiles are on their way
  return std::clamp(multiprocessors / static_cast<int>(tiles), 1,
                    std::max(steps_of(p, depth) / least_steps, 1));
}

}  // namespace stepladder::matmul

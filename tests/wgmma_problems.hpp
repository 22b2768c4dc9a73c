// Convolutions for the rungs on Hopper's tensor cores, where chance brings too little. wgmma_tiles_test.cpp shows
// how they are cut where a device has as few multiprocessors as the emulator's.
#pragma once

#include <vector>

#include "kernels/convolution/convolution.hpp"

namespace stepladder::convolution {

// For tiles of every width, and more of them than multiprocessors.
inline std::vector<Problem> problems_of_many_tiles() {
  std::vector<Problem> all;
  for (const Layout layout : {Layout::nchw, Layout::nhwc})
    for (const std::int64_t wide : {250, 117, 57}) {
      const Problem p{.batch = 6,
                      .height = 16,
                      .width = 13,
                      .kernel_h = 3,
                      .kernel_w = 3,
                      .pad_h = 1,
                      .pad_w = 1,
                      .layout = layout};
      Problem forward = p, data = p, weights = p;
      forward.direction = Direction::forward;
      forward.in_channels = 8;
      forward.out_channels = wide;
      data.direction = Direction::backward_data;
      data.in_channels = wide;
      data.out_channels = 5;
      weights.direction = Direction::backward_weights;
      weights.batch = 2;
      weights.height = 5;
      weights.width = 7;
      weights.in_channels = 140;
      weights.out_channels = wide;
      all.insert(all.end(), {forward, data, weights});
    }
  return all;
}

// One tile for each group, and sums so long that they are cut into parts.
inline std::vector<Problem> problems_of_long_sums() {
  std::vector<Problem> all;
  for (const Layout layout : {Layout::nchw, Layout::nhwc})
    for (const std::int64_t groups : {1, 2}) {
      const Problem p{.batch = 2,
                      .in_channels = 35 * groups,
                      .height = 7,
                      .width = 8,
                      .out_channels = 42 * groups,
                      .kernel_h = 3,
                      .kernel_w = 3,
                      .pad_h = 1,
                      .pad_w = 1,
                      .groups = groups,
                      .layout = layout};
      Problem forward = p, data = p, weights = p;  // of weights the sum is over pixels
      forward.direction = Direction::forward;
      data.direction = Direction::backward_data;
      weights.direction = Direction::backward_weights;
      weights.batch = 6;
      weights.in_channels = 11 * groups;
      all.insert(all.end(), {forward, data, weights});
    }
  return all;
}

}  // namespace stepladder::convolution

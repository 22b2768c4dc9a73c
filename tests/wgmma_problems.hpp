// Convolutions for the wgmma rungs that random problems rarely produce. wgmma_tiles_test.cpp checks
// their tiling on a device with as few multiprocessors as the emulator has.
#pragma once

#include <vector>

#include "kernels/convolution/convolution.hpp"

namespace stepladder::convolution {

// Tiles of every width, and more tiles than multiprocessors.
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

// One tile per group, and K large enough for split-K.
inline std::vector<Problem> problems_of_large_k() {
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
      Problem forward = p, data = p, weights = p;  // K of weights is the pixels
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

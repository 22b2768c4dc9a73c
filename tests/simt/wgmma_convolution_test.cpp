// Convolutions on Hopper's tensor cores, where chance brings too little: tiles of every width, so many that
// blocks take one after another, and so few that all sums are cut into parts.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "kernels/convolution/convolution.hpp"
#include "tests/proof.hpp"
#include "tests/simt/multiprocessor.hpp"
#include "tests/simt/streams.hpp"

namespace stepladder {
namespace {

using convolution::Direction;
using convolution::Layout;

// Of every width of tiles some 10 are wanted, where the device has 8 multiprocessors.
std::vector<convolution::Problem> large_problems() {
  std::vector<convolution::Problem> all;
  for (const Layout layout : {Layout::nchw, Layout::nhwc})
    for (const std::int64_t wide : {250, 117, 57}) {
      const convolution::Problem p{.batch = 6,
                                   .height = 16,
                                   .width = 13,
                                   .kernel_h = 3,
                                   .kernel_w = 3,
                                   .pad_h = 1,
                                   .pad_w = 1,
                                   .layout = layout};
      convolution::Problem forward = p, data = p, weights = p;
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

// One tile for each group, and long sums.
std::vector<convolution::Problem> deep_problems() {
  std::vector<convolution::Problem> all;
  for (const Layout layout : {Layout::nchw, Layout::nhwc})
    for (const Direction direction :
         {Direction::forward, Direction::backward_data, Direction::backward_weights})
      for (const std::int64_t groups : {1, 2})
        all.push_back({.direction = direction,
                       .batch = 2,
                       .in_channels = 35 * groups,
                       .height = 7,
                       .width = 8,
                       .out_channels = 42 * groups,
                       .kernel_h = 3,
                       .kernel_w = 3,
                       .pad_h = 1,
                       .pad_w = 1,
                       .groups = groups,
                       .layout = layout});
  return all;
}

void expect_right(const std::vector<convolution::Problem>& problems) {
  const simt::DeferredStreams deferred;
  int rungs = 0;
  for (const Variant& variant : primitive("convolution").variants()) {
    if (!variant.name.ends_with("_wgmma")) continue;
    ++rungs;
    for (const convolution::Problem& p : problems) {
      const auto problem = make_case<convolution::Convolution>(p, "test", "test");
      const Verdict verdict = prove(*problem, variant);
      EXPECT_EQ(verdict.outcome, Outcome::passed)
          << variant.name << " " << problem->info().layout << " " << problem->info().direction
          << " " << problem->info().shape << ": " << verdict.reason;
    }
  }
  EXPECT_GT(rungs, 0);
}

TEST(EmulatedWgmmaConvolution, SumsAreCutIntoPartsWhereTilesAreFew) {
  simt::seed_order(4);
  expect_right(deep_problems());
}

TEST(EmulatedWgmmaConvolution, BlocksTakeTileAfterTileOfEveryWidth) {
  simt::seed_order(3);
  expect_right(large_problems());
}

}  // namespace
}  // namespace stepladder

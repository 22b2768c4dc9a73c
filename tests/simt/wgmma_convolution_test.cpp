// Convolutions on Hopper's tensor cores, where chance brings too little: tiles of every width, and so many
// that blocks take one after another.
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

TEST(EmulatedWgmmaConvolution, BlocksTakeTileAfterTileOfEveryWidth) {
  simt::seed_order(3);
  const simt::DeferredStreams deferred;
  int rungs = 0;
  for (const Variant& variant : primitive("convolution").variants()) {
    if (!variant.name.ends_with("_wgmma")) continue;
    ++rungs;
    for (const convolution::Problem& p : large_problems()) {
      const auto problem = make_case<convolution::Convolution>(p, "large", "large");
      const Verdict verdict = prove(*problem, variant);
      EXPECT_EQ(verdict.outcome, Outcome::passed)
          << variant.name << " " << problem->info().layout << " " << problem->info().direction
          << " " << problem->info().shape << ": " << verdict.reason;
    }
  }
  EXPECT_GT(rungs, 0);
}

}  // namespace
}  // namespace stepladder

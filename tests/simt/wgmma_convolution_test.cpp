// Convolutions by wgmma are correct for tiles of every width, with so many tiles that each block
// computes several, and with so few that K is split.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "harness/adapters/primitives.hpp"
#include "kernels/convolution/convolution.hpp"
#include "tests/simt/multiprocessor.hpp"
#include "tests/simt/streams.hpp"
#include "tests/verdict.hpp"
#include "tests/wgmma_problems.hpp"

namespace stepladder {
namespace {

void expect_correct(const std::vector<convolution::Problem>& problems) {
  const simt::DeferredStreams deferred;
  int rungs = 0;
  for (const Variant& variant : primitive("convolution").variants()) {
    if (!variant.name.ends_with("_wgmma")) continue;
    ++rungs;
    for (const convolution::Problem& p : problems)
      EXPECT_TRUE(passes<convolution::Convolution>(p, variant)) << name_of(p.layout);
  }
  EXPECT_GT(rungs, 0);
}

TEST(EmulatedWgmmaConvolution, SplitsKWhereTilesAreFew) {
  simt::seed_order(4);
  expect_correct(convolution::problems_of_large_k());
}

TEST(EmulatedWgmmaConvolution, BlocksComputeSeveralTilesOfEveryWidth) {
  simt::seed_order(3);
  expect_correct(convolution::problems_of_many_tiles());
}

}  // namespace
}  // namespace stepladder

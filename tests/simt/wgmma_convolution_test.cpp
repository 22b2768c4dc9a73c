// Convolutions on Hopper's tensor cores are right with tiles of every width, so many that blocks take one after
// another, and with so few that all sums are cut into parts.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "kernels/convolution/convolution.hpp"
#include "tests/proof.hpp"
#include "tests/simt/multiprocessor.hpp"
#include "tests/simt/streams.hpp"
#include "tests/wgmma_problems.hpp"

namespace stepladder {
namespace {

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
  expect_right(convolution::problems_of_long_sums());
}

TEST(EmulatedWgmmaConvolution, BlocksTakeTileAfterTileOfEveryWidth) {
  simt::seed_order(3);
  expect_right(convolution::problems_of_many_tiles());
}

}  // namespace
}  // namespace stepladder

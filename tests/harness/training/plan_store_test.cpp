// The rung that a step uses for a problem.
#include "harness/rungs/plan_store.hpp"

#include <gtest/gtest.h>

#include "harness/adapters/primitives.hpp"
#include "kernels/layers/layers.hpp"

namespace stepladder {
namespace {

Technique chosen_by_vendor(layers::Layer layer) {
  PlanStore plans(1);
  const layers::Problem problem{.layer = layer, .batch = 3, .channels = 20, .spatial = 49};
  return plans.choose<layers::Layers>(problem, layers_type(), UseSpec("vendor"), 1)
      .variant.info->technique;
}

// oneDNN has ReLU, and no dropout with the mask of the contract.
TEST(PlanStore, VendorLeavesAProblemThatNoLibrarySupportsToTheBest) {
  const std::vector<Variant> vendors = UseSpec("vendor").candidates(layers_type());
  const bool has_library = vendors.front().info->technique == Technique::vendor &&
                           vendors.front().why_unavailable.empty();
  EXPECT_EQ(chosen_by_vendor(layers::Layer::relu) == Technique::vendor, has_library);
  EXPECT_NE(chosen_by_vendor(layers::Layer::dropout), Technique::vendor);
}

}  // namespace
}  // namespace stepladder

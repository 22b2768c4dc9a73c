// With --cold, operands on a device rotate through twice its L2, whatever the caches of the host.
#include <gtest/gtest.h>

#include <set>

#include "harness/results/problem_bench.hpp"
#include "kernels/sgd_update/sgd_update.hpp"
#include "tests/simt/emulated_device.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/verdict.hpp"

namespace stepladder {
namespace {

using sgd_update::Operands;
using sgd_update::Problem;
using sgd_update::SgdUpdate;

std::set<float*> used;

void update(const Problem& p, const Operands& o) {
  used.insert(o.weights);
  for (std::int64_t i = 0; i < p.count; ++i) o.weights[i] -= o.learning_rate * o.gradient[i];
}

TEST(ColdOperands, RotateThroughTwiceTheL2OfTheDevice) {
  EXPECT_EQ(device()->l2_bytes(), std::size_t{simt::l2_bytes});
  constexpr std::int64_t count = simt::l2_bytes / 4 / sizeof(float);
  Variant variant = unregistered<SgdUpdate>("update", plan_of<update>);
  VariantInfo info = *variant.info;
  info.place = Place::cuda;
  variant.info = variant.entry.info = &info;

  const TemporaryFolder folder;
  stepladder::Run run({.directory = folder / "run", .command = "test", .threads = {}});
  ProblemBench bench(run, {.measure = {.repetitions = 3, .budget_seconds = 0.02}, .cold = true});
  const auto problem = make_case<SgdUpdate>({.count = count}, "s", "weights");
  ASSERT_EQ(problem->operand_bytes(), simt::l2_bytes / 2.0);
  used.clear();
  bench.measure(*problem, {variant});
  EXPECT_EQ(bench.counts().ok, 1);
  EXPECT_EQ(used.size(), 4U);
}

}  // namespace
}  // namespace stepladder

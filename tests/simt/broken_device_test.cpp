// When a kernel breaks the device, only its row fails. The rows after it are skipped, since their
// variants could not run.
#include <gtest/gtest.h>

#include <map>

#include "harness/io/csv.hpp"
#include "harness/results/problem_bench.hpp"
#include "harness/results/result_columns.hpp"
#include "harness/verify/verify.hpp"
#include "kernels/common/cuda/check.hpp"
#include "kernels/sgd_update/sgd_update.hpp"
#include "tests/simt/multiprocessor.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/verdict.hpp"

namespace stepladder {
namespace {

using sgd_update::Operands;
using sgd_update::Problem;
using sgd_update::SgdUpdate;

void break_it(const Problem&, const Operands&) {
  simt::break_device(true);
  throw std::runtime_error("an illegal memory access was encountered");
}
void wrong(const Problem&, const Operands&) {}
void update(const Problem& p, const Operands& o) {
  for (std::int64_t i = 0; i < p.count; ++i) o.weights[i] -= o.learning_rate * o.gradient[i];
}
int runs = 0;
void break_it_when_timed(const Problem& p, const Operands& o) {
  if (++runs > 3) break_it(p, o);
  update(p, o);
}

template <auto Function>
Variant variant(const char* name) {
  Variant cuda = unregistered<SgdUpdate>(name, plan_of<Function>);
  static VariantInfo info;
  info = *cuda.info;
  info.place = Place::cuda;
  cuda.info = cuda.entry.info = &info;
  return cuda;
}

class BrokenDevice : public testing::Test {
 protected:
  ~BrokenDevice() override { simt::break_device(false); }

  // Status of each row, and whether the run went on to its end.
  std::pair<std::map<std::string, std::string>, bool> bench(const std::vector<Variant>& variants) {
    stepladder::Run run({.directory = folder_ / "run", .command = "test", .threads = {}});
    ProblemBench bench(run, {.measure = {.repetitions = 3, .budget_seconds = 0.003}});
    const auto problem = make_case<SgdUpdate>({.count = 50}, "s", "weights");
    bool lost = false;
    try {
      bench.measure(*problem, variants);
    } catch (const DeviceLost&) {
      lost = true;
    }
    std::map<std::string, std::string> status;
    const CsvFile file(folder_ / "run/summary.csv", summary_columns().names());
    for (const CsvRow& row : file.rows())
      status[row.text("variant")] = row.text("status") + " " + row.text("verified");
    return {status, !lost};
  }

  TemporaryFolder folder_;
};

TEST_F(BrokenDevice, SkipsTheOtherRowsOfTheProblem) {
  const auto [status, ended] =
      bench({variant<update>("before"), variant<break_it>("breaks"), variant<wrong>("after")});
  EXPECT_FALSE(ended);
  EXPECT_EQ(status.at("breaks"), "failed no");
  EXPECT_EQ(status.at("before"), "skipped no");
  EXPECT_EQ(status.at("after"), "skipped no");
}

TEST_F(BrokenDevice, DuringTimingSkipsAllRowsOfTheProblem) {
  runs = 0;
  const auto [status, ended] =
      bench({variant<update>("correct"), variant<break_it_when_timed>("breaks")});
  EXPECT_FALSE(ended);
  EXPECT_EQ(status.at("correct"), "skipped no");
  EXPECT_EQ(status.at("breaks"), "skipped no");
}

TEST_F(BrokenDevice, IsNotReportedForAWrongResult) {
  const auto [status, ended] = bench({variant<wrong>("wrong"), variant<update>("correct")});
  EXPECT_TRUE(ended);
  EXPECT_EQ(status.at("wrong"), "failed no");
  EXPECT_EQ(status.at("correct"), "ok yes");
}

// CUDA's own message is "unspecified launch failure".
TEST(CudaCheck, NamesTheReasonsForWhichAKernelStops) {
  try {
    STEPLADDER_CUDA_CHECK(cudaErrorLaunchFailure);
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("more than 4 s for a barrier"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace stepladder

// The processor time of a container is read from the files of its control groups.
#include "harness/problem/threads.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/temporary_folder.hpp"

namespace stepladder {
namespace {

class ProcessorQuota : public testing::Test {
 protected:
  double quota() const { return processor_quota(folder_ / "fs", folder_ / "process"); }

  TemporaryFolder folder_;
};

TEST_F(ProcessorQuota, WithoutFilesThereIsNoLimit) {
  EXPECT_TRUE(std::isinf(quota()));
  folder_.write("process", "0::/\n");
  EXPECT_TRUE(std::isinf(quota()));
  folder_.write("fs/cpu.max", "max 100000\n");
  EXPECT_TRUE(std::isinf(quota()));
}

TEST_F(ProcessorQuota, IsTheLeastOfTheGroupAndThoseAboveIt) {
  folder_.write("process", "0::/pod/container\n");
  folder_.write("fs/pod/container/cpu.max", "300000 100000\n");
  EXPECT_EQ(quota(), 3);
  folder_.write("fs/pod/cpu.max", "150000 100000\n");
  EXPECT_EQ(quota(), 1.5);
  folder_.write("fs/pod/cpu.max", "max 100000\n");
  EXPECT_EQ(quota(), 3);
}

TEST_F(ProcessorQuota, IsReadFromTheRootWhereThePathIsThatOfTheHost) {
  folder_.write("process", "0::/docker/0123\n");
  folder_.write("fs/cpu.max", "50000 100000\n");
  EXPECT_EQ(quota(), 0.5);
}

TEST_F(ProcessorQuota, IsThatOfVersionOneToo) {
  folder_.write("process", "5:memory:/a\n4:cpu,cpuacct:/a\n3:cpuset:/b\n");
  folder_.write("fs/cpu,cpuacct/a/cpu.cfs_quota_us", "200000\n");
  folder_.write("fs/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
  folder_.write("fs/cpuset/b/cpu.max", "1 100000\n");
  EXPECT_EQ(quota(), 2);
  folder_.write("fs/cpu,cpuacct/a/cpu.cfs_quota_us", "-1\n");
  EXPECT_TRUE(std::isinf(quota()));
}

TEST(WhyFewerThreads, OneThreadAlwaysRuns) {
  EXPECT_EQ(why_fewer_threads(1), "");
  EXPECT_GE(thread_limit().threads, 1);
}

TEST(WhyFewerThreads, MoreThanThisProcessMayRunHaveAReason) {
  const int most = thread_limit().threads;
  EXPECT_NE(why_fewer_threads(most + 1).find("threads do not run: "), std::string::npos);
}

TEST(WhySmallerTeam, ThreadsMayShareProcessors) {
  EXPECT_EQ(why_smaller_team(thread_limit().threads + 1), "");
}

}  // namespace
}  // namespace stepladder

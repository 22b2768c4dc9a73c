#include "harness/measure/memory_limits.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>

#include "harness/measure/machine.hpp"
#include "tests/temporary_folder.hpp"

namespace stepladder {
namespace {

namespace fs = std::filesystem;

constexpr double mib = 1 << 20;

class ControlGroups : public testing::Test {
 protected:
  void write(const fs::path& file, const std::string& text) { folder_.write(file, text + "\n"); }
  const fs::path& root() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
};

TEST_F(ControlGroups, WithoutFilesLeaveEverything) {
  EXPECT_TRUE(std::isinf(left_by_control_groups(root()).bytes));
}

TEST_F(ControlGroups, OfVersion2LimitInAnyGroupAbove) {
  write("proc/self/cgroup", "0::/user/job");
  const fs::path groups = "sys/fs/cgroup";
  write(groups / "user/job/memory.max", "max");
  write(groups / "user/job/memory.current", "1048576");
  write(groups / "user/memory.max", std::to_string(64 << 20));
  write(groups / "user/memory.current", std::to_string(24 << 20));
  write(groups / "user/memory.stat", "anon 5\ninactive_file 4194304\nactive_file 7");
  const MemoryLeft left = left_by_control_groups(root());
  EXPECT_EQ(left.bytes, 44 * mib);
  EXPECT_TRUE(left.limit.ends_with("/user/memory.max")) << left.limit;
}

TEST_F(ControlGroups, OfVersion1InAContainerAreThoseOfTheMountPoint) {
  write("proc/self/cgroup", "5:cpu,memory:/docker/0123\n1:pids:/docker/0123\n0::/");
  const fs::path group = "sys/fs/cgroup/memory";  // which has no docker/0123 in the container
  write(group / "memory.limit_in_bytes", std::to_string(32 << 20));
  write(group / "memory.usage_in_bytes", std::to_string(40 << 20));
  EXPECT_EQ(left_by_control_groups(root()).bytes, 0);
  write(group / "memory.usage_in_bytes", std::to_string(20 << 20));
  EXPECT_EQ(left_by_control_groups(root()).bytes, 12 * mib);
  write(group / "memory.limit_in_bytes", "9223372036854771712");  // no limit
  EXPECT_GT(left_by_control_groups(root()).bytes, 1e18);
}

TEST(ProcessLimits, AreThoseOfTheProcess) {
  for (const auto& [resource, name] :
       {std::pair{RLIMIT_AS, "ulimit -v"}, {RLIMIT_DATA, "ulimit -d"}}) {
    rlimit before{};
    ASSERT_EQ(getrlimit(resource, &before), 0);
    if (before.rlim_cur != RLIM_INFINITY) continue;
    constexpr rlim_t large = rlim_t{1} << 45U;
    const rlimit limit{large, before.rlim_max};
    ASSERT_EQ(setrlimit(resource, &limit), 0);
    const MemoryLeft left = left_by_process_limits();
    ASSERT_EQ(setrlimit(resource, &before), 0);
    EXPECT_LT(left.bytes, static_cast<double>(large));
    EXPECT_EQ(left.limit, name);
  }
}

}  // namespace
}  // namespace stepladder

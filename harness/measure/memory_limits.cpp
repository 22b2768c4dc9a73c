#include "harness/measure/memory_limits.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <vector>

namespace stepladder {
namespace {

namespace fs = std::filesystem;

// The first number of a file; nothing if there is none, as in "max".
std::optional<double> number_of_file(const fs::path& file) {
  std::ifstream in(file);
  double value = 0;
  return in >> value ? std::optional(value) : std::nullopt;
}

// The number behind a word at the begin of a line.
double number_after(const fs::path& file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(key) && line.size() > key.size())
      return std::strtod(line.c_str() + key.size(), nullptr);
  return 0;
}

void take_less(MemoryLeft& left, double bytes, const std::string& limit) {
  if (bytes < left.bytes) left = {std::max(bytes, 0.0), limit};
}

struct Version {
  std::vector<const char*> limits;
  const char* usage;
  const char* droppable;  // in memory.stat
};
const Version version2{{"memory.max", "memory.high"}, "memory.current", "inactive_file "};
const Version version1{{"memory.limit_in_bytes"}, "memory.usage_in_bytes", "total_inactive_file "};

// Every group from `group` up to the mount point has a limit of its own. In a container the mount
// point may be the group of the container, whose path is not there.
void look_at_groups(const fs::path& mount, const fs::path& group, const Version& version,
                    MemoryLeft& left) {
  for (fs::path path = group.relative_path();; path = path.parent_path()) {
    const fs::path folder = path.empty() ? mount : mount / path;
    if (const std::optional<double> used = number_of_file(folder / version.usage))
      for (const char* name : version.limits)
        if (const std::optional<double> limit = number_of_file(folder / name))
          take_less(left, *limit - *used + number_after(folder / "memory.stat", version.droppable),
                    (folder / name).string());
    if (path.empty()) return;
  }
}

}  // namespace

// /proc/self/cgroup has lines "0::/path" of version 2 and "4:cpu,memory:/path" of version 1.
MemoryLeft left_by_control_groups(const fs::path& root) {
  MemoryLeft left;
  const fs::path mount = root / "sys/fs/cgroup";
  std::ifstream in(root / "proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = fmt::format(",{},", line.substr(first + 1, second - first - 1));
    const std::string path = line.substr(second + 1);
    if (controllers == ",,") {
      look_at_groups(mount, path, version2, left);
      look_at_groups(mount / "unified", path, version2, left);  // beside version 1
    } else if (controllers.find(",memory,") != std::string::npos) {
      look_at_groups(mount / "memory", path, version1, left);
    }
  }
  return left;
}

MemoryLeft left_by_process_limits() {
  MemoryLeft left;
  const auto look_at = [&](auto resource, const char* used, const char* name) {
    rlimit limit{};
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
    const double kib = number_after("/proc/self/status", used);
    take_less(left, static_cast<double>(limit.rlim_cur) - 1024 * kib, name);
  };
  look_at(RLIMIT_AS, "VmSize:", "ulimit -v");
  look_at(RLIMIT_DATA, "VmData:", "ulimit -d");
  return left;
}

}  // namespace stepladder

// Limits below the memory of the machine: those of control groups (containers, systemd, Slurm) and
// of the process (ulimit).
#pragma once

#include <filesystem>
#include <limits>
#include <string>

namespace stepladder {

struct MemoryLeft {
  double bytes = std::numeric_limits<double>::infinity();
  std::string limit;  // what limits it: "ulimit -v", or the file of the control group
};

// What the control group of this process and those above it leave, of version 2 and of version 1.
// Page cache that the kernel can drop counts as left. `root` holds proc/ and sys/.
MemoryLeft left_by_control_groups(const std::filesystem::path& root = "/");

// What RLIMIT_AS and RLIMIT_DATA leave.
MemoryLeft left_by_process_limits();

}  // namespace stepladder

// How many threads really run: OpenMP and the container may give fewer than are asked for.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace stepladder {

// The processors of OpenMP's places; empty if threads are not bound. The affinity of the first
// thread may be a single one of them.
std::vector<int> processors_of_places();

struct ThreadLimit {
  int threads = 1;     // at least 1
  std::string reason;  // what sets the limit: "OMP_THREAD_LIMIT allows 1"
};

// The least of what OpenMP allows, the processors on which this process may run and the processor
// time of its control group. Starts no thread.
ThreadLimit thread_limit();

// Empty if OpenMP starts as many threads, otherwise why not. Starts an OpenMP team.
std::string why_smaller_team(int threads);

// Empty if as many threads start and each can have a processor of its own, otherwise why not: what
// a timing of so many threads needs. Ranks may share processors: theirs are not counted.
std::string why_fewer_threads(int threads);

// Processors' worth of time that the control group of a process and those above it have; infinite
// without a limit. `groups`: /sys/fs/cgroup; `of_process`: /proc/self/cgroup.
double processor_quota(const std::filesystem::path& groups,
                       const std::filesystem::path& of_process);

}  // namespace stepladder

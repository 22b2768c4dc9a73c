#include "harness/problem/threads.hpp"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>
#include <vector>

#include "harness/io/counted.hpp"
#include "harness/ranks/mpi_session.hpp"

namespace stepladder {
namespace {

constexpr double unlimited = std::numeric_limits<double>::infinity();

// "50000 100000" or "max 100000" of version 2; the two files of version 1.
double quota_of(const std::filesystem::path& group) {
  double quota = 0, period = 0;
  if (std::ifstream both(group / "cpu.max"); !(both >> quota >> period)) {
    std::ifstream first(group / "cpu.cfs_quota_us"), second(group / "cpu.cfs_period_us");
    if (!(first >> quota) || !(second >> period)) return unlimited;
  }
  return quota > 0 && period > 0 ? quota / period : unlimited;
}

bool names_cpu(const std::string& controllers) {
  std::istringstream in(controllers);
  for (std::string one; std::getline(in, one, ',');)
    if (one == "cpu") return true;
  return false;
}

int processors() {
  const std::vector<int> all = processors_of_places();
  return all.empty() ? omp_get_num_procs()
                     : static_cast<int>(std::set(all.begin(), all.end()).size());
}

int size_of_team(int threads) {
  int size = 0;
#pragma omp parallel num_threads(threads)
#pragma omp single
  size = omp_get_num_threads();
  return size;
}

std::string of_processors(int count) {
  return "this process may run on " + counted(count, "processor");
}

ThreadLimit of_openmp() {
  return {omp_get_thread_limit(),
          fmt::format("OMP_THREAD_LIMIT allows {}", omp_get_thread_limit())};
}

std::string why_not(int threads, const std::string& reason) {
  return fmt::format("{} threads do not run: {}", threads, reason);
}

}  // namespace

std::vector<int> processors_of_places() {
  std::vector<int> all;
  for (int place = 0; place < omp_get_num_places(); ++place) {
    std::vector<int> processors(static_cast<std::size_t>(omp_get_place_num_procs(place)));
    omp_get_place_proc_ids(place, processors.data());
    all.insert(all.end(), processors.begin(), processors.end());
  }
  return all;
}

double processor_quota(const std::filesystem::path& groups,
                       const std::filesystem::path& of_process) {
  double least = unlimited;
  std::ifstream in(of_process);
  for (std::string line; std::getline(in, line);) {  // "0::/path" or "4:cpu,cpuacct:/path"
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (!controllers.empty() && !names_cpu(controllers)) continue;
    const std::filesystem::path root = controllers.empty() ? groups
                                       : std::filesystem::exists(groups / controllers)
                                           ? groups / controllers
                                           : groups / "cpu";
    // In a container, the path may be that of the host: then the files lie in the root.
    std::filesystem::path group = line.substr(second + 1);
    for (;; group = group.parent_path()) {
      least = std::min(least, quota_of(root / group.relative_path()));
      if (!group.has_relative_path()) break;
    }
  }
  return least;
}

ThreadLimit thread_limit() {
  ThreadLimit limit = of_openmp();
  if (const int here = processors(); here < limit.threads) limit = {here, of_processors(here)};
  const double quota = processor_quota("/sys/fs/cgroup", "/proc/self/cgroup");
  if (quota < limit.threads)
    limit = {std::max(1, static_cast<int>(quota)),
             fmt::format("its control group has the time of {:.3g} processors", quota)};
  return limit;
}

std::string why_smaller_team(int threads) {
  if (threads <= 1) return {};
  if (const ThreadLimit limit = of_openmp(); limit.threads < threads)
    return why_not(threads, limit.reason);
  const int size = size_of_team(threads);
  return size < threads ? why_not(threads, fmt::format("OpenMP started {}", size)) : "";
}

std::string why_fewer_threads(int threads) {
  if (threads > 1 && !MpiSession::launched_by_mpirun())
    if (const ThreadLimit limit = thread_limit(); limit.threads < threads)
      return why_not(threads, limit.reason);
  return why_smaller_team(threads);
}

}  // namespace stepladder

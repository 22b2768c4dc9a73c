#include "harness/measure/cores.hpp"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <fstream>
#include <set>
#include <utility>
#include <vector>

#include "harness/io/now.hpp"
#include "harness/problem/threads.hpp"

namespace stepladder {
namespace {

using Vector [[gnu::vector_size(16)]] = float;

constexpr double slow_share = 1.4;      // of the throughput loop, on one core of two threads
constexpr double far_seconds = 150e-9;  // round trip of a cache line; 50 to 80 ns within an L3

// The first thread and `other` answer each other through one cache line. Seconds of a round trip;
// nonsense on the other threads.
double round_trip(std::atomic<int>& line, int thread, int other) {
  constexpr int trips = 100;
  const double start = now();
  for (int i = 0; i < trips; ++i) {
    const int ask = 2 * i + 1, answer = 2 * i + 2;
    if (thread == 0) {
      line.store(ask);
      while (line.load() != answer) {
      }
    } else if (thread == other) {
      while (line.load() != ask) {
      }
      line.store(answer);
    }
  }
  return (now() - start) / trips;
}

int integer_in(const std::string& path) {
  int value = -1;
  std::ifstream(path) >> value;
  return value;
}

bool processors_share_a_core() {
  std::set<std::pair<int, int>> cores;
  const std::vector<int> processors = processors_of_places();
  for (const int processor : processors) {
    const std::string folder = fmt::format("/sys/devices/system/cpu/cpu{}/topology/", processor);
    cores.emplace(integer_in(folder + "physical_package_id"), integer_in(folder + "core_id"));
  }
  return cores.size() < processors.size();
}

}  // namespace

// Inlined into the team, its registers would be spilled.
[[gnu::noinline]] double time_throughput() {
  std::array<Vector, 14> sums;
  sums.fill(Vector{1, 1, 1, 1});
  const Vector factor{0.5F, 0.5F, 0.5F, 0.5F}, term = factor;
  const double start = now();
  for (int i = 0; i < 4000; ++i)
    for (Vector& sum : sums) {
      sum = sum * factor + term;
      asm volatile("" : "+x"(sum));
    }
  return now() - start;
}

CoreProbe::CoreProbe() : must_share_(processors_share_a_core()) {}

Cores CoreProbe::probe(int threads) {
  if (threads < 2) return Cores::unknown;
  for (int i = 0; i < 2; ++i) alone_ = std::min(alone_, time_throughput());
  alignas(64) std::atomic<int> line = 0;
  double longest_trip = 0;
  int slowed = 0;
#pragma omp parallel num_threads(threads) reduction(+ : slowed)
  {
    const int thread = omp_get_thread_num();
    double fastest = std::numeric_limits<double>::infinity();
#pragma omp barrier
    for (int i = 0; i < 3; ++i) fastest = std::min(fastest, time_throughput());
    slowed += fastest > slow_share * alone_;
    for (int other = 1; other < omp_get_num_threads(); ++other) {
#pragma omp barrier
      const double seconds = round_trip(line, thread, other);
      if (thread == 0) longest_trip = std::max(longest_trip, seconds);
#pragma omp barrier
      if (thread == 0) line = 0;
    }
  }
  if (slowed >= 2) return Cores::shared;
  return longest_trip > far_seconds ? Cores::far : Cores::near;
}

}  // namespace stepladder

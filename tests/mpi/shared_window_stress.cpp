// 100,000 short calls of the shared-memory rungs (10,000 on more than 3 ranks), back to back, with
// new values in each and random delays on random ranks. Every result is checked: a rank that
// overtakes must not overwrite what a slow one still reads.
//     mpirun -np 3 build/shared_window_stress
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "harness/problem/random.hpp"
#include "harness/ranks/mpi_session.hpp"
#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/all_reduce/mpi/window.hpp"
#include "kernels/common/mpi.hpp"
#include "tests/mpi/expect.hpp"

namespace stepladder::test {
namespace {

using all_reduce::AllReduce;
using all_reduce::Problem;
using all_reduce::Window;

// Whole numbers: their sums are exact.
float value(int call, int rank, std::int64_t i) {
  return static_cast<float>((call * 13 + rank * 101 + i * 7) % 4099);
}

float expected(int call, int ranks, std::int64_t i) {
  float sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += value(call, rank, i);
  return sum;
}

void delay(Random& random) {
  using Clock = std::chrono::steady_clock;
  if (random.integer(0, 31) != 0) return;
  const Clock::time_point end = Clock::now() + std::chrono::nanoseconds(random.integer(0, 5000));
  while (Clock::now() < end) {
  }
}

// The number of wrong elements on this rank.
std::int64_t faults(const detail::Entry& entry, std::int64_t count, int calls,
                    const MpiSession& session) {
  const Resources resources{.communicator = session.communicator()};
  const auto plan =
      plan_variant<AllReduce>(entry, Problem{.count = count, .ranks = session.ranks()}, resources);
  const Window window(communicator_of(resources),
                      2 * static_cast<std::size_t>(count) * sizeof(float));
  auto* const input = reinterpret_cast<float*>(window.segment());
  float* const output = input + count;
  Random random(static_cast<std::uint64_t>(session.rank()) + 1);
  std::int64_t wrong = 0;
  for (int call = 0; call < calls; ++call) {
    for (std::int64_t i = 0; i < count; ++i) input[i] = value(call, session.rank(), i);
    delay(random);
    plan->run({input, output, &window});
    for (std::int64_t i = 0; i < count; ++i)
      wrong += output[i] != expected(call, session.ranks(), i);
  }
  return wrong;
}

// Of the widest ISA of this CPU.
std::vector<const detail::Entry*> shared_memory_rungs() {
  std::vector<const detail::Entry*> rungs;
  for (const detail::Entry& entry : detail::entries(AllReduce::name)) {
    if (!std::string_view(entry.info->name).starts_with("shared_window") ||
        !cpu_has(entry.info->isa))
      continue;
    const detail::Entry** same = nullptr;
    for (const detail::Entry*& rung : rungs)
      if (std::string_view(rung->info->name) == entry.info->name) same = &rung;
    if (same == nullptr)
      rungs.push_back(&entry);
    else if (entry.info->isa > (*same)->info->isa)
      *same = &entry;
  }
  return rungs;
}

void check(const MpiSession& session) {
  struct Calls {
    std::int64_t count;
    int calls;
  };
  const std::vector<const detail::Entry*> rungs = shared_memory_rungs();
  expect(rungs.size() == 2, "there are two rungs in shared memory");
  // Ranks that share a core wait for a time slice of other programs in each call.
  const int share = session.ranks() > 3 ? 10 : 1;
  for (const detail::Entry* rung : rungs)
    for (const Calls& c : {Calls{1, 20000}, {14, 10000}, {15, 10000}, {200, 8000}, {3000, 2000}}) {
      const std::int64_t wrong = faults(*rung, c.count, c.calls / share, session);
      expect(wrong == 0, fmt::format("{}, {} calls of {} floats: {} wrong elements",
                                     full_name(*rung->info), c.calls, c.count, wrong));
    }
}

}  // namespace
}  // namespace stepladder::test

int main() {
  using namespace stepladder::test;
  return run_checks([](int) { check(stepladder::mpi_session()); });
}

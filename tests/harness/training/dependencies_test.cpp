// Any order that the dependencies allow leaves the same memory as the sequential one.
#include "harness/execution/dependencies.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

#include "harness/problem/random.hpp"

namespace stepladder {
namespace {

using List = std::vector<std::vector<Access>>;
using After = std::vector<std::vector<std::size_t>>;

std::array<std::byte, 16> memory;

Access reads(std::size_t from, std::size_t bytes) { return {memory.data() + from, bytes, false}; }
Access writes(std::size_t from, std::size_t bytes) { return {memory.data() + from, bytes, true}; }

TEST(Dependencies, ReadersOfTheSameMemoryAreIndependent) {
  const List list = {{writes(0, 4)}, {reads(0, 4)}, {reads(2, 2), writes(8, 4)}, {writes(3, 1)}};
  EXPECT_EQ(dependencies(list), (After{{}, {0}, {0}, {1, 2}}));
}

TEST(Dependencies, AreNotTransitive) {
  const List list = {{writes(0, 4)}, {reads(0, 4), writes(4, 4)}, {reads(0, 8), writes(8, 4)}};
  EXPECT_EQ(dependencies(list), (After{{}, {0}, {1}}));
}

TEST(Dependencies, AllMemoryDependsOnEverything) {
  const List list = {{writes(0, 4)}, {all_memory}, {reads(8, 1)}, {}};
  EXPECT_EQ(dependencies(list), (After{{}, {0}, {1}, {}}));
}

// Each operation writes a hash of its number and of all bytes that it accesses, to every byte that
// it may write.
std::array<std::uint64_t, 16> run(const List& list, const std::vector<std::size_t>& order) {
  std::array<std::uint64_t, 16> state{};
  for (const std::size_t i : order) {
    std::uint64_t hash = i + 1;
    const auto for_each = [&](const auto& body) {
      for (const Access& access : list[i])
        for (std::size_t b = 0; b < access.bytes; ++b)
          body(state[static_cast<std::size_t>(access.from - memory.data()) + b], access.writes);
    };
    for_each([&](std::uint64_t byte, bool) { hash = (hash ^ byte) * 1099511628211ULL + byte; });
    for_each([&](std::uint64_t& byte, bool written) {
      if (written) byte = hash;
    });
  }
  return state;
}

TEST(Dependencies, AnyOrderThatTheyAllowGivesTheSameResult) {
  Random random(3);
  int different = 0;
  for (int round = 0; round < 300; ++round) {
    List list(static_cast<std::size_t>(random.integer(1, 12)));
    for (std::vector<Access>& accesses : list)
      for (std::int64_t left = random.integer(0, 3); left > 0; --left) {
        const auto from = static_cast<std::size_t>(random.integer(0, 15));
        const auto bytes = static_cast<std::size_t>(random.integer(0, 16 - std::int64_t(from)));
        accesses.push_back(random.integer(0, 2) == 0 ? writes(from, bytes) : reads(from, bytes));
      }
    const After after = dependencies(list);
    std::vector<std::size_t> in_turn(list.size()), order;
    for (std::size_t i = 0; i < list.size(); ++i) in_turn[i] = i;
    std::set<std::size_t> left(in_turn.begin(), in_turn.end());
    while (!left.empty()) {  // a random one whose dependencies are done
      auto next = std::next(left.begin(), random.integer(0, std::int64_t(left.size()) - 1));
      if (std::ranges::any_of(after[*next],
                              [&](std::size_t before) { return left.contains(before); }))
        continue;
      order.push_back(*next);
      left.erase(next);
    }
    EXPECT_EQ(run(list, order), run(list, in_turn)) << round;
    different += order != in_turn ? 1 : 0;
  }
  EXPECT_GT(different, 100);
}

}  // namespace
}  // namespace stepladder

#include "harness/execution/dependencies.hpp"

#include <algorithm>
#include <cstdint>

namespace stepladder {
namespace {

bool collide(const Access& one, const Access& other) {
  const auto first = reinterpret_cast<std::uintptr_t>(one.from);
  const auto second = reinterpret_cast<std::uintptr_t>(other.from);
  const bool overlap = first < second ? second - first < one.bytes : first - second < other.bytes;
  return (one.writes || other.writes) && overlap && one.bytes > 0 && other.bytes > 0;
}

bool collide(const std::vector<Access>& one, const std::vector<Access>& other) {
  return std::any_of(one.begin(), one.end(), [&](const Access& access) {
    return std::any_of(other.begin(), other.end(),
                       [&](const Access& another) { return collide(access, another); });
  });
}

}  // namespace

std::vector<std::vector<std::size_t>> dependencies(
    std::span<const std::vector<Access>> operations) {
  std::vector<std::vector<std::size_t>> after(operations.size());
  std::vector<std::vector<bool>> is_before(operations.size());  // [operation][any before it]
  for (std::size_t i = 0; i < operations.size(); ++i) {
    is_before[i].resize(i);
    for (std::size_t j = i; j-- > 0;) {
      if (is_before[i][j] || !collide(operations[j], operations[i])) continue;
      after[i].push_back(j);
      is_before[i][j] = true;
      for (std::size_t k = 0; k < j; ++k)
        if (is_before[j][k]) is_before[i][k] = true;
    }
    std::reverse(after[i].begin(), after[i].end());
  }
  return after;
}

}  // namespace stepladder

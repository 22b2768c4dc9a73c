// Which operations of a list have to wait for which, by the memory that they read and write.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "harness/adapters/types.hpp"

namespace stepladder {

// Of an operation that nothing may run beside.
inline constexpr Access all_memory{nullptr, std::numeric_limits<std::size_t>::max(), true};

// For each operation those before it that it must come after, in ascending order: because one of the two
// writes what the other touches. Those that already come before one of these are left out.
std::vector<std::vector<std::size_t>> dependencies(std::span<const std::vector<Access>> operations);

}  // namespace stepladder

// The dependencies of operations, from the memory that they read and write.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "harness/adapters/make_case.hpp"

namespace stepladder {

// The access of an operation that must not run concurrently with any other.
inline constexpr Access all_memory{nullptr, std::numeric_limits<std::size_t>::max(), true};

// For each operation the earlier ones that it depends on, in ascending order: one of the two writes
// memory that the other accesses. Transitive dependencies are omitted.
std::vector<std::vector<std::size_t>> dependencies(std::span<const std::vector<Access>> operations);

}  // namespace stepladder

// FNV-1a, 64 bits (Fowler, Noll and Vo).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace stepladder {

inline constexpr std::uint64_t fnv1a_basis = 14695981039346656037ULL;

// `hash`: the hash of the bytes before these.
inline std::uint64_t fnv1a(std::span<const std::byte> bytes, std::uint64_t hash = fnv1a_basis) {
  for (const std::byte byte : bytes)
    hash = (hash ^ static_cast<std::uint64_t>(byte)) * 1099511628211ULL;
  return hash;
}

}  // namespace stepladder

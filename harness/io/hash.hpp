// FNV-1a, 64 bits (Fowler, Noll and Vo).
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace stepladder {

inline constexpr std::uint64_t fnv1a_basis = 14695981039346656037ULL;

// `hash`: the hash of the bytes before these.
inline std::uint64_t fnv1a(std::span<const std::byte> bytes, std::uint64_t hash = fnv1a_basis) {
  for (const std::byte byte : bytes)
    hash = (hash ^ static_cast<std::uint64_t>(byte)) * 1099511628211ULL;
  return hash;
}

// Eight bytes at a time, for results of many megabytes. The rotation takes a difference in the
// highest bit, which a multiplication leaves there, to the others.
inline std::uint64_t hash_of_words(std::span<const std::byte> bytes,
                                   std::uint64_t hash = fnv1a_basis) {
  for (std::size_t at = 0; at < bytes.size(); at += sizeof hash) {
    std::uint64_t word = 0;
    std::memcpy(&word, &bytes[at], std::min(sizeof word, bytes.size() - at));
    hash = (std::rotl(hash, 23) ^ word) * 1099511628211ULL;
  }
  return hash;
}

}  // namespace stepladder

// Random numbers that are the same on every machine: raw mt19937_64 bits, no std distributions.
#pragma once

#include <cstdint>
#include <random>
#include <string_view>

namespace stepladder {

class Random {
 public:
  explicit Random(std::uint64_t seed) : bits_(seed) {}
  // The stream of a named thing under a seed, independent of what was drawn for other names.
  Random(std::uint64_t seed, std::string_view name) : bits_(mix(seed, name)) {}

  std::int64_t integer(std::int64_t low, std::int64_t high) {  // both included
    return low + static_cast<std::int64_t>(bits_() % static_cast<std::uint64_t>(high - low + 1));
  }
  float uniform(float low, float high) {
    const float unit = static_cast<float>(bits_() >> 40U) * 0x1p-24F;  // [0, 1)
    return low + (high - low) * unit;
  }
  bool coin() { return (bits_() >> 63U) != 0; }

 private:
  static std::uint64_t mix(std::uint64_t seed, std::string_view name) {
    std::uint64_t hash = 14695981039346656037ULL ^ seed;  // FNV-1a
    for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
    return hash;
  }
  std::mt19937_64 bits_;
};

}  // namespace stepladder

// Random numbers that are the same on every machine: raw mt19937_64 bits, no std distributions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/io/hash.hpp"

namespace stepladder {

class Random {
 public:
  explicit Random(std::uint64_t seed) : bits_(seed) {}
  // A stream for each name under a seed: draws for other names do not change it.
  Random(std::uint64_t seed, std::string_view name)
      : bits_(fnv1a(std::as_bytes(std::span(name)), fnv1a_basis ^ seed)) {}

  std::int64_t integer(std::int64_t low, std::int64_t high) {  // both included
    return low + static_cast<std::int64_t>(bits_() % static_cast<std::uint64_t>(high - low + 1));
  }
  float uniform(float low, float high) {
    const float unit = static_cast<float>(bits_() >> 40U) * 0x1p-24F;  // [0, 1)
    return low + (high - low) * unit;
  }
  bool coin() { return (bits_() >> 63U) != 0; }

 private:
  std::mt19937_64 bits_;
};

// Fisher-Yates: every order equally likely.
template <class T>
void shuffle(std::vector<T>& values, Random& random) {
  for (std::size_t last = values.size(); last-- > 1;) {
    const auto other = random.integer(0, static_cast<std::int64_t>(last));
    std::swap(values[last], values[static_cast<std::size_t>(other)]);
  }
}

}  // namespace stepladder

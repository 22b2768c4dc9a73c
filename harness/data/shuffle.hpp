// A random order that is the same on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "harness/problem/random.hpp"

namespace stepladder::data {

// Fisher-Yates: every order equally likely.
template <class T>
void shuffle(std::vector<T>& values, Random& random) {
  for (std::size_t last = values.size(); last-- > 1;) {
    const auto other = random.integer(0, static_cast<std::int64_t>(last));
    std::swap(values[last], values[static_cast<std::size_t>(other)]);
  }
}

}  // namespace stepladder::data

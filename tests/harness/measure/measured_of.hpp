// A measured row with given repetitions.
#pragma once

#include <utility>
#include <vector>

#include "harness/measure/measure.hpp"

namespace stepladder {

// Rounds of (seconds, disturbed).
inline Measured measured_of(const std::vector<std::pair<double, bool>>& rounds) {
  Measured measured;
  for (const auto& [seconds, disturbed] : rounds) {
    Sample sample;
    sample.round = static_cast<int>(measured.samples.size());
    sample.seconds = seconds;
    sample.disturbed = disturbed;
    measured.samples.push_back(sample);
  }
  return measured;
}

}  // namespace stepladder

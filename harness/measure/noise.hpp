// Disturbances of the machine: a calibration loop before and after every repetition, and the CPU
// time that the hypervisor gave to others.
#pragma once

#include <cstdint>
#include <string>

namespace stepladder {

// Disturbances during a number of repetitions.
struct NoiseTally {
  std::int64_t repetitions = 0, disturbed = 0;
  double elapsed_seconds = 0, stolen_seconds = 0;

  NoiseTally& operator+=(const NoiseTally& other);
  std::string sentence() const;  // for the user
};

class NoiseGuard {
 public:
  NoiseGuard();

  // Runs the loop (about 50 µs) on the calling thread. Returns its time over the shortest so far.
  double calibrate();

  // Stolen seconds of all CPUs since boot; 0 where the kernel does not report them.
  static double stolen_seconds();

  // Whether a repetition counts as disturbed.
  static bool is_disturbed(double calibration_ratio, double stolen, double elapsed) {
    return calibration_ratio > slow_ratio || stolen > 0.02 * elapsed + 0.005;
  }
  static constexpr double slow_ratio = 1.25;

 private:
  double fastest_;
};

}  // namespace stepladder

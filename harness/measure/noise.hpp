// How quiet the machine is: a fixed loop, timed before and after every repetition, and the CPU time
// that the hypervisor gave to others.
#pragma once

#include <cstdint>
#include <string>

namespace stepladder {

// What the guard saw of a number of repetitions.
struct NoiseTally {
  std::int64_t repetitions = 0, disturbed = 0;
  double elapsed_seconds = 0, stolen_seconds = 0;

  NoiseTally& operator+=(const NoiseTally& other);
  std::string sentence() const;  // for the end of a run
};

class NoiseGuard {
 public:
  NoiseGuard();

  // Times the loop (about 50 µs) on the calling thread: its time over the fastest seen in this run.
  double calibrate();

  // Stolen seconds of all CPUs since the machine started; 0 where the kernel does not tell.
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

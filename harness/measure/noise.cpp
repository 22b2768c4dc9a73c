#include "harness/measure/noise.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <limits>
#include <string>

namespace stepladder {
namespace {

// A chain of dependent multiplications: a fixed number of clock cycles.
double time_chain() {
  const auto start = std::chrono::steady_clock::now();
  std::uint64_t x = 3;
  for (int i = 0; i < 40000; ++i) {
    x = x * 6364136223846793005ULL + 1442695040888963407ULL;
    asm volatile("" : "+r"(x));
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

NoiseGuard::NoiseGuard() : fastest_(std::numeric_limits<double>::infinity()) {
  for (int i = 0; i < 50; ++i) fastest_ = std::min(fastest_, time_chain());
}

double NoiseGuard::calibrate() {
  const double seconds = time_chain();
  fastest_ = std::min(fastest_, seconds);
  return seconds / fastest_;
}

double NoiseGuard::stolen_seconds() {
  std::ifstream in("/proc/stat");
  std::string label;
  double user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0, soft_irq = 0, stolen = 0;
  if (!(in >> label >> user >> nice >> system >> idle >> wait >> irq >> soft_irq >> stolen))
    return 0;
  return stolen / static_cast<double>(sysconf(_SC_CLK_TCK));
}

NoiseTally& NoiseTally::operator+=(const NoiseTally& other) {
  repetitions += other.repetitions;
  disturbed += other.disturbed;
  elapsed_seconds += other.elapsed_seconds;
  stolen_seconds += other.stolen_seconds;
  return *this;
}

std::string NoiseTally::sentence() const {
  if (repetitions == 0) return "Nothing was timed.";
  const double share = 100.0 * static_cast<double>(disturbed) / static_cast<double>(repetitions);
  return fmt::format(
      "The machine was {}: {} of {} repetitions ({:.0f} %) were disturbed, {:.1f} s of CPU time "
      "were stolen in {:.0f} s of timing.",
      share < 5    ? "quiet"
      : share < 25 ? "somewhat noisy"
                   : "noisy",
      disturbed, repetitions, share, stolen_seconds, elapsed_seconds);
}

}  // namespace stepladder

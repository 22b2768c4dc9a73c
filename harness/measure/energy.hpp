// Energy of the CPU packages from the RAPL counters, which Linux shows as powercap zones
// (Documentation/power/powercap/powercap.rst). It includes all processes and excludes GPUs.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace stepladder {

class EnergyCounter {
 public:
  explicit EnergyCounter(const std::filesystem::path& powercap = "/sys/class/powercap");

  void start();
  // Joules of all packages since start(); nothing where the counters cannot be read. One wrap of a
  // counter is corrected; they wrap after minutes at the earliest.
  std::optional<double> stop();
  // Empty, or why there are no counters.
  const std::string& why_unavailable() const { return why_unavailable_; }

 private:
  struct Package {
    std::filesystem::path counter;      // energy_uj
    double range = 0;                   // microjoules at which the counter wraps
    std::optional<double> before = {};  // microjoules
  };
  std::vector<Package> packages_;
  std::string why_unavailable_;
};

}  // namespace stepladder

// Driver, power limit and clocks of the GPU, from NVML, the management library that comes with
// NVIDIA's driver. They are only read: no clock and no setting is changed.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace stepladder {

class GpuMonitor {
 public:
  // Of the first device.
  GpuMonitor();

  // Values that NVML does not tell are null.
  nlohmann::json driver() const;             // version
  nlohmann::json power_limit_watts() const;  // that is in force
  nlohmann::json clocks() const;             // {"sm_mhz", "memory_mhz"}, now
  nlohmann::json highest_clocks() const;     // the same
  // Empty, or why there are no values.
  const std::string& why_unavailable() const { return why_unavailable_; }

 private:
  // NVML's nvmlDevice_t and nvmlReturn_t. Its header is not part of every CUDA toolkit.
  using Gpu = void*;
  using Status = int;
  static constexpr Status success = 0;
  using ReadClock = Status (*)(Gpu, int domain, unsigned* megahertz);

  nlohmann::json read(ReadClock clock) const;

  Gpu gpu_ = nullptr;  // null: unavailable
  Status (*driver_version_)(char* version, unsigned bytes) = nullptr;
  Status (*power_limit_)(Gpu, unsigned* milliwatts) = nullptr;
  ReadClock clock_ = nullptr, highest_clock_ = nullptr;
  std::string why_unavailable_;
};

}  // namespace stepladder

#include "harness/measure/gpu_monitor.hpp"

#include <array>
#include <stdexcept>

#include "kernels/common/device.hpp"
#include "kernels/common/shared_library.hpp"

namespace stepladder {

GpuMonitor::GpuMonitor() {
  if (device() == nullptr) {
    why_unavailable_ = device_status();
    return;
  }
  try {
    const SharedLibrary nvml("libnvidia-ml.so.1");
    const char* (*message)(Status) = nvml["nvmlErrorString"];
    Status (*init)() = nvml["nvmlInit_v2"];
    Status (*find)(const char* pci_address, Gpu*) = nvml["nvmlDeviceGetHandleByPciBusId_v2"];
    driver_version_ = nvml["nvmlSystemGetDriverVersion"];
    power_limit_ = nvml["nvmlDeviceGetEnforcedPowerLimit"];
    clock_ = nvml["nvmlDeviceGetClockInfo"];
    highest_clock_ = nvml["nvmlDeviceGetMaxClockInfo"];
    Status status = init();
    if (status == success) status = find(device()->pci_address().c_str(), &gpu_);
    if (status != success) {
      gpu_ = nullptr;
      why_unavailable_ = std::string("NVML: ") + message(status);
    }
  } catch (const std::exception& error) {  // it is not there, or too old
    why_unavailable_ = error.what();
  }
}

nlohmann::json GpuMonitor::driver() const {
  std::array<char, 80> version{};  // NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE
  if (gpu_ == nullptr || driver_version_(version.data(), version.size()) != success) return nullptr;
  return version.data();
}

nlohmann::json GpuMonitor::power_limit_watts() const {
  unsigned milliwatts = 0;
  if (gpu_ == nullptr || power_limit_(gpu_, &milliwatts) != success) return nullptr;
  return 1e-3 * milliwatts;
}

nlohmann::json GpuMonitor::clocks() const { return read(clock_); }
nlohmann::json GpuMonitor::highest_clocks() const { return read(highest_clock_); }

nlohmann::json GpuMonitor::read(ReadClock clock) const {
  constexpr int sm = 1, memory = 2;  // nvmlClockType_t
  const auto value_of = [&](int domain) -> nlohmann::json {
    unsigned megahertz = 0;
    if (gpu_ == nullptr || clock(gpu_, domain, &megahertz) != success) return nullptr;
    return megahertz;
  };
  return {{"sm_mhz", value_of(sm)}, {"memory_mhz", value_of(memory)}};
}

}  // namespace stepladder

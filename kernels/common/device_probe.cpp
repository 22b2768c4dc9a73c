#include "kernels/common/device_probe.hpp"

#include "kernels/common/device.hpp"
#include "kernels/common/variant.hpp"

namespace stepladder {
namespace {

std::span<const DeviceProbe> registered;

}  // namespace

std::span<const DeviceProbe> device_probes() { return registered; }
void register_device_probes(std::span<const DeviceProbe> probes) { registered = probes; }

ProbeOutcome run_probe(const DeviceProbe& probe, std::string& lost_by) {
  if (!lost_by.empty()) return {false, "not tried: the device was lost by " + lost_by};
  try {
    const std::string remark = probe.run();
    return {false, remark.empty() ? "ok" : "ok: " + remark};
  } catch (const NotHere& reason) {
    return {false, std::string("not on this device: ") + reason.what()};
  } catch (const std::exception& error) {
    try {
      device()->synchronize();
    } catch (const std::exception&) {
      lost_by = probe.feature;
    }
    return {true, std::string("FAILED: ") + error.what()};
  }
}

}  // namespace stepladder

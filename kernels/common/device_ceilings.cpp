#include "kernels/common/device_ceilings.hpp"

#include "kernels/common/device.hpp"

namespace stepladder {
namespace {

std::vector<DeviceCeiling> (*measure_registered)() = nullptr;

}  // namespace

std::vector<DeviceCeiling> measure_device_ceilings() {
  if (measure_registered == nullptr || device() == nullptr) return {};
  return measure_registered();
}

void register_device_ceilings(std::vector<DeviceCeiling> (*measure)()) {
  measure_registered = measure;
}

}  // namespace stepladder
